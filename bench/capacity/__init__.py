"""What sessions cost each part on this machine, and what is full first when there are a million of them a day."""
