"""CRC-32C: known values, from every kind of buffer."""

import subprocess
import sys

import pytest

from protocol.primitives import Buffer
from protocol.records.checksum import crc32c


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),  # the check value of CRC-32C/iSCSI
        (bytearray(32), 0x8A9136AA),  # RFC 3720, B.4: 32 bytes of zeroes
        (memoryview(b"\xff" * 32), 0x62A8AB43),  # and of ones
    ],
)
def test_known_values(data: Buffer, expected: int) -> None:
    assert crc32c(data) == expected


def test_the_package_itself_is_not_imported() -> None:
    code = "import sys, protocol.records.checksum; sys.exit('crc32c' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
