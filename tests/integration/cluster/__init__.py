"""Clusters of real processes, to which bad things happen while clients are at work."""
