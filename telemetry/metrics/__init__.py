"""Metrics: every instrument with its unit, the port that Prometheus reads, and what feeds them."""
