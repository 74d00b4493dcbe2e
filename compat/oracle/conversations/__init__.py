"""What is asked, subject by subject.  A file that is put here is part of the oracle."""

import importlib
import pkgutil

from compat.oracle.conversation import CONVERSATIONS

__all__ = ["CONVERSATIONS", "SUBJECTS"]

for _module in sorted(info.name for info in pkgutil.iter_modules(__path__)):
    importlib.import_module(f"{__name__}.{_module}")

SUBJECTS = frozenset(each.subject for each in CONVERSATIONS)
