"""Clients of other languages: scenarios stay in Python, and a program of theirs carries out single calls."""
