"""What runs on Ray Serve: an application for each version, one for the routers, and who starts and stops them."""
