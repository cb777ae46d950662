"""Connections of which the other end has to go on: with a request, its body, and with reading."""

import asyncio
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_LEAST_RATE = 1024
"""Bytes of a body per second at least."""


class PatientProtocol(H11Protocol):
    """HTTP/1.1 that waits no longer than `seconds` for the other end, whatever it trickles.

    For the head of a request as a whole, for each `seconds` × 1 KiB of a body, and for the next
    64 KiB of an answer to be read. Nobody waits for a client while the server does not read, as
    when the disk is slow. uvicorn itself only ends connections that are idle between requests.
    """

    seconds: ClassVar[float] = 30.0
    _timer: asyncio.TimerHandle | None = None
    _since = 0.0
    _received = 0
    _phase = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Begin to wait."""
        super().connection_made(transport)
        self._begin()
        self._tick()

    def data_received(self, data: bytes) -> None:
        """Count what comes."""
        self._received += len(data)
        super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self._begin()
        super().on_response_complete()

    def resume_writing(self) -> None:
        """Wait anew: some of the answer was read."""
        self._begin()
        super().resume_writing()

    def _begin(self) -> None:
        self._since, self._received = self.loop.time(), 0

    def _tick(self) -> None:
        self._timer = self.loop.call_later(min(1.0, self.seconds / 4), self._tick)
        phase = self._awaited()
        if phase != self._phase or not phase:
            self._phase = phase
            self._begin()
        elif self.loop.time() - self._since >= self.seconds:
            if phase == "body" and self._received >= self.seconds * _LEAST_RATE:
                self._begin()
            else:
                self._give_up()

    def _awaited(self) -> str:
        """Return what the other end has to do, "" where it is the server that has to go on."""
        if self.transport.is_closing():
            return "close"
        if self.flow.write_paused:
            return "read"
        if self.conn.their_state is h11.IDLE:
            return "head"
        is_coming = self.conn.their_state is h11.SEND_BODY and not self.flow.read_paused
        return "body" if is_coming and not self.conn.they_are_waiting_for_100_continue else ""

    def _give_up(self) -> None:
        if self._phase == "head" and self.conn.our_state is h11.IDLE:
            said = h11.Response(status_code=408, headers=[("connection", "close")], reason=b"")
            self.transport.write(self.conn.send(said) or b"")
            self.transport.write(self.conn.send(h11.EndOfMessage()) or b"")
            self.transport.close()
        else:
            self.transport.abort()


def patient_for(seconds: float) -> type[PatientProtocol]:
    """Return the protocol that waits for so long."""

    class Configured(PatientProtocol):
        pass

    Configured.seconds = seconds
    return Configured
