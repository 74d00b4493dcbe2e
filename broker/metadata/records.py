"""A record of the metadata log, before it is encoded."""

from protocol.schema import Message

VersionedRecord = tuple[Message, int]
"""The record and the version in which it is written."""
