"""What is asked, subject by subject.  Every file here is part of the oracle as soon as it is there."""

import importlib
import pkgutil

for _module in sorted(info.name for info in pkgutil.iter_modules(__path__)):
    importlib.import_module(f"{__name__}.{_module}")
