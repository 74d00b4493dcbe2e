"""Ottla beside other brokers: the same loads, on the same machine, one broker after the other."""
