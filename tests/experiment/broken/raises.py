"""A team's module with a fault of its own."""

PRICES = {"desk": 3}
LAMP = PRICES["lamp"]
