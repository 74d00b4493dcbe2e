"""What is raised where a client cannot be had."""


class ClientMissing(Exception):
    """The client cannot be had here; the text says why."""
