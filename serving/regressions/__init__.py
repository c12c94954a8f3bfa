"""Sessions that went badly as regression cases: collected, tried on a version, asked for at a promotion."""
