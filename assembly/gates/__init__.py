"""Gates: what a run must show before anything is trained."""
