"""Mistakes that code could make, by name: tests must see each of them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Patch = Callable[..., None]
"""Sets an attribute for as long as the mistake lasts: owner, name, value."""

Mistake = Callable[[Patch], None]


class Mistakes(dict[str, Mistake]):
    """By the name of the function that makes the mistake."""

    def note(self, mistake: Mistake) -> Mistake:
        """Decorates a function that makes one."""
        self[mistake.__name__] = mistake
        return mistake

    @contextmanager
    def made(self, name: str) -> Iterator[None]:
        """While the block lasts, the code makes this mistake."""
        undo: list[tuple[Any, str, Any]] = []

        def patch(owner: Any, attribute: str, value: Any) -> None:
            undo.append((owner, attribute, owner.__dict__[attribute]))
            setattr(owner, attribute, value)

        self[name](patch)
        try:
            yield
        finally:
            for owner, attribute, value in reversed(undo):
                setattr(owner, attribute, value)
