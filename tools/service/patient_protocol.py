"""HTTP connections with timeouts for the head of a request, its body, and reading a response."""

import asyncio
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_LEAST_RATE = 1024
"""The minimum rate of a request body, in bytes per second."""
_LINGERING_SECONDS = 2.0
"""After a response before the end of the body, how long the client has to read it."""
_MOST_UNWANTED = 1 << 16
"""The bytes of a body that are parsed after the response, so that the connection can be reused."""


class PatientProtocol(H11Protocol):
    """An HTTP/1.1 connection that ends if the client stalls or trickles for `seconds`.

    The time limit holds for the complete head of a request, for each `seconds` × 1 KiB of a body,
    and for reading the next 64 KiB of a response. It does not run while the server itself does not
    read, as with a slow disk. uvicorn only ends connections that are idle between requests.

    A large body that nobody wants any more, since its response is complete, is not parsed to its
    end: small chunks would keep the server busy for as long as they come. The connection ends then.
    """

    seconds: ClassVar[float] = 30.0
    _timer: asyncio.TimerHandle | None = None
    _since = 0.0
    _received = 0
    _phase = ""
    _unwanted = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Start the time limit of the first request."""
        super().connection_made(transport)
        self._begin()
        self._tick()

    def data_received(self, data: bytes) -> None:
        """Count the received bytes."""
        self._received += len(data)
        self._count_unwanted(len(data))
        if self._unwanted <= _MOST_UNWANTED:
            super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Restart the time limit for the next request."""
        self._begin()
        super().on_response_complete()

    def resume_writing(self) -> None:
        """Restart the time limit, since the client has read a part of the response."""
        self._begin()
        super().resume_writing()

    def _count_unwanted(self, count: int) -> None:
        """Count the bytes of a body whose response is complete; end the connection at the most."""
        is_unwanted = self.conn.our_state is h11.DONE and self.conn.their_state is h11.SEND_BODY
        before, self._unwanted = self._unwanted, self._unwanted + count if is_unwanted else 0
        if before <= _MOST_UNWANTED < self._unwanted:
            # To close at once could discard the response before the client has read it.
            self.loop.call_later(_LINGERING_SECONDS, self.transport.close)

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
        """Return what the client has to do next, "" if the server is to act."""
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
            response = h11.Response(status_code=408, headers=[("connection", "close")], reason=b"")
            self.transport.write(self.conn.send(response) or b"")
            self.transport.write(self.conn.send(h11.EndOfMessage()) or b"")
            self.transport.close()
        else:
            self.transport.abort()


def patient_for(seconds: float) -> type[PatientProtocol]:
    """Return the protocol class with a time limit of `seconds`."""

    class Configured(PatientProtocol):
        pass

    Configured.seconds = seconds
    return Configured
