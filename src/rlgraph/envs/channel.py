"""Messages of bytes over a socket, with a deadline for question and answer together."""

from __future__ import annotations

import socket
import struct
import time

HEADER = struct.Struct("!Q")
"""Length of the message that follows, in bytes."""

CHUNK_BYTES = 1 << 16


class Channel:
    """One end of a connected stream socket."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def ask(self, question: bytes, deadline_s: float) -> bytes:
        """Send, then receive, within ``deadline_s`` in all.

        Raises TimeoutError when it is over; EOFError or ConnectionError when the other end is gone.
        """
        until = time.monotonic() + deadline_s
        self._end.settimeout(deadline_s)
        self.send(question)
        (length,) = HEADER.unpack(self._read(HEADER.size, until))
        return self._read(length, until)

    def send(self, message: bytes) -> None:
        """Send a message."""
        self._end.sendall(HEADER.pack(len(message)) + message)

    def receive(self) -> bytes:
        """Wait for a message, for ever. Raises EOFError when the other end is gone."""
        (length,) = HEADER.unpack(self._read(HEADER.size, None))
        return self._read(length, None)

    def close(self) -> None:
        """Close this end."""
        self._end.close()

    def _read(self, length: int, until: float | None) -> bytes:
        parts = bytearray()
        while len(parts) < length:
            if until is not None:
                # 0.0 would mean "do not wait at all", and fail otherwise than a timeout does.
                self._end.settimeout(max(until - time.monotonic(), 1e-6))
            part = self._end.recv(min(length - len(parts), CHUNK_BYTES))
            if not part:
                raise EOFError
            parts += part
        return bytes(parts)
