"""Checks of the files in log directories: they only read, and say in words what is wrong."""
