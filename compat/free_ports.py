"""Ports that were free a moment ago, for servers that cannot take one themselves."""

from ottla.cluster import free_ports

__all__ = ["free_ports"]
