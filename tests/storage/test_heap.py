"""Memory that is freed stays for the next batch."""

import platform
import subprocess
import sys

import pytest

BATCHES = 20

UNPACK = f"""
import os, resource
from protocol.records.compression import Compression, compress, decompress
from storage.heap import keep_freed_memory

keep_freed_memory()
packed = compress(Compression.LZ4, os.urandom(500_000) + bytes(500_000))
faults = []
for _ in range(3 + {BATCHES}):
    decompress(Compression.LZ4, packed)
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
print(faults[-1] - faults[2])
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="how other libraries do it is their affair")
def test_unpacking_does_not_ask_the_system_for_the_same_memory_again_and_again() -> None:
    run = subprocess.run([sys.executable, "-c", UNPACK], check=True, capture_output=True, timeout=60)
    pages_of_a_batch = 1_000_000 // 4096
    assert int(run.stdout) < BATCHES * pages_of_a_batch / 10
