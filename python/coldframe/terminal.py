"""What goes to a terminal: text without the control characters that a terminal would obey.

    ESC ] 0 ; .. BEL    sets the title of a terminal, ESC ] 52 its clipboard, ESC [ 2 J clears it
    U+009B              is the same as ESC [
    CR, BS              let later text replace what was printed
    U+202E              shows the text after it from right to left: `gpj.exe` looks like `exe.jpg`

Names and values of files may have such characters. They are shown as in JSON, `\\u001b`, so that a JSON text
stays the same JSON text. Everything that the commands print goes through `Printed` or `console_of`.
"""

from __future__ import annotations

import codecs
import contextlib
import re
import sys
from collections.abc import Iterator
from typing import IO, Any

# Bytes that a terminal may obey, from names that are not UTF-8; and half characters.
_OTHER = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udc9f\udd00-\udfff]"
_CONTROL = re.compile(r"[\x00-\x1f" + _OTHER)
_CONTROL_IN_LINES = re.compile(r"[\x00-\x08\x0b-\x1f" + _OTHER)


def printable(text: str, *, lines: bool = False) -> str:
    """The text with control characters as in JSON. With `lines`, line breaks and tabs stay."""
    return (_CONTROL_IN_LINES if lines else _CONTROL).sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


class Printed:
    """Standard output or error, for text."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Writes the text without control characters."""
        self.stream.write(printable(text, lines=True))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class PrintedBytes:
    """A binary file whose text goes to a terminal."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self.closed = False

    def write(self, data: Any) -> int:
        """Writes UTF-8 text without control characters."""
        self._stream.write(printable(self._decoder.decode(bytes(data)), lines=True))
        return len(data)

    def flush(self) -> None:
        """Writes what was printed so far."""
        self._stream.flush()

    def writable(self) -> bool:
        """Whether the stream can be written: yes."""
        return True


def stream_of(printed: Any) -> IO[str]:
    """The stream itself: what is written to it is not changed."""
    stream: IO[str] = printed.stream if isinstance(printed, Printed) else printed
    return stream


@contextlib.contextmanager
def printed_safely() -> Iterator[None]:
    """Replaces standard output and error by `Printed`."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (_printed(stream) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _printed(stream: Any) -> Any:
    return stream if stream is None or isinstance(stream, Printed) else Printed(stream)


def console_of(stream: Any, **options: Any) -> Any:
    """Rich's console on a stream. The console's own control characters pass; control characters of texts do
    not pass.
    """
    from rich.console import Console
    from rich.segment import Segment

    class SafeConsole(Console):
        def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                if segment.control:
                    yield segment
                else:
                    yield segment._replace(text=printable(segment.text, lines=True))

    return SafeConsole(file=stream_of(stream), **options)
