"""How much freed memory the process keeps for the next batch."""

PIECE_BYTES = 2 * 1024 * 1024
"""What unpacking a batch takes at once, mostly: producers cut batches at a megabyte."""


def keep_freed_memory() -> None:
    """Let pieces of up to ``PIECE_BYTES`` come from the heap, and twice as much stay there when it is free.

    Otherwise glibc asks the system for each of them, which clears it page by page as it is filled: that takes
    longer than to unpack what is put there.  It leaves this off for pieces as large as one that it has seen
    freed (mallopt(3), M_MMAP_THRESHOLD).  Where another library manages the memory nothing changes.
    """
    bytearray(PIECE_BYTES)
