"""Ottla's own tests.  Folders mirror the source tree; `CONTRIBUTING.md` says which kind lives where."""
