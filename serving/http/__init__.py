"""The router's HTTP side: routes, bodies, and what holds for every request."""
