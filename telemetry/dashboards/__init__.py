"""Grafana dashboards: plain descriptions, and what turns them into Grafana's JSON."""
