"""Texts in which nothing can be seen: Kafka refuses some of them."""

from typing import Final

_JAVA_BLANKS: Final = "".join(map(chr, range(0x21)))
"""What Java's ``trim`` takes away."""


def is_blank(text: str) -> bool:
    """Whether nothing is left when Java has trimmed it."""
    return not text.strip(_JAVA_BLANKS)
