"""What is measured: speed and learning, each row against its target. ``python -m bench --list`` names the rows."""
