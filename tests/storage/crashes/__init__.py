"""Random histories of logs that crash, checked against plain lists of records.

``reference`` is what the logs must hold, ``subject`` a log directory in a memory file system that goes
through the same steps, ``invariants`` what must hold at any time, ``histories`` how all of it is driven from
a seed, and ``mutations`` are mistakes in ``storage`` that the invariants must see.
``python -m tests.storage.crashes`` goes through many histories.
"""
