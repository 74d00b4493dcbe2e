"""Figures taken from outside: what a client sees of a broker, any broker, and what that costs it."""
