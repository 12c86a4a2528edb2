"""The frame of an Avro file: its lengths, compared with the bytes that exist.

    Obj 1 | entries of a map: key, value | 0 | sync (16 bytes) | rows, length, bytes, sync | ..

From https://avro.apache.org/docs/1.12.0/specification/#object-container-files. PyIceberg's compiled decoder
does not check lengths, and reads beyond the end of a file that was cut.
"""

from __future__ import annotations

_MAGIC = b"Obj\x01"
_SYNC = 16


def check_frame(content: bytes) -> None:
    """Raises ValueError if the file is not made of whole blocks."""
    if content[: len(_MAGIC)] != _MAGIC:
        raise ValueError(f"expected an Avro file, found {content[:4]!r}")
    at = len(_MAGIC)
    while True:
        entries, at = _number(content, at)
        if entries == 0:
            break
        if entries < 0:
            _, at = _number(content, at)
        # Each entry has two bytes at least, so the loop ends with the content.
        for _ in range(2 * abs(entries)):
            at = _after(content, at, *_number(content, at))
    sync = content[at : at + _SYNC]
    at = _after(content, at, _SYNC, at)
    while at < len(content):
        _, at = _number(content, at)
        at = _after(content, at, *_number(content, at))
        if content[at : at + _SYNC] != sync:
            raise ValueError(f"byte {at}: expected the end of a block of an Avro file")
        at += _SYNC


def _number(content: bytes, at: int) -> tuple[int, int]:
    """A zigzag integer of at most 64 bits, and the offset after it."""
    value = shift = 0
    for byte in content[at : at + 10]:
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
    raise ValueError(f"byte {at}: expected a number, found the end of the Avro file or too many digits")


def _after(content: bytes, start: int, length: int, at: int) -> int:
    """The offset after `length` bytes that begin at `at`."""
    if not 0 <= length <= len(content) - at:
        raise ValueError(f"byte {start}: a length of {length} bytes, but {len(content) - at} are left")
    return at + length
