"""The scenarios in Python: written once, against an interface that each Python client's driver fills in."""
