"""Connections that cannot be used to wear a server out.

uvicorn waits for the head of a request for as long as it takes, and takes as much of it as comes.
Here a head has SECONDS to arrive and at most LONGEST bytes; a connection that goes on sending a
body which nobody reads any more is closed after the same time, and so is one whose client does not
read what it is sent. There are at most MOST connections; one more is closed at once. What is no
HTTP is answered with a problem.
"""

from __future__ import annotations

import asyncio
from typing import Any

from tidewolf.service.answers import PROBLEM
from tidewolf.service.problems import problem
from tidewolf.service.strict_json import dumps

SECONDS = 10.0
"""How long the head of a request, or a client that reads nothing, may take."""
LONGEST = 1 << 16
"""Bytes of the head of a request, at most."""
MOST = 2000
"""Connections, at most."""


def careful_protocol(
    *, seconds: float = SECONDS, longest: int = LONGEST, most: int = MOST
) -> type[asyncio.Protocol]:
    """uvicorn's protocol, on httptools where that is installed, with these limits.

    Parameters
    ----------
    seconds : float, default 10.0
        How long the head of a request, or a client that reads nothing, may take.
    longest : int, default 65536
        Bytes that it may have.
    most : int, default 2000
        Connections, at most.

    Returns
    -------
    type
        For `uvicorn.Config(http=...)`.
    """
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    base: Any = AutoHTTPProtocol

    class Careful(base):  # type: ignore[misc]
        """One connection."""

        _alarm: asyncio.TimerHandle | None = None
        _stuck: asyncio.TimerHandle | None = None
        _waiting = 0
        """Bytes that came since the last request was taken in."""

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            if len(self.connections) > most:
                transport.close()
            else:
                self._alarm = self.loop.call_later(seconds, self._give_up)

        def data_received(self, data: bytes) -> None:
            before = self.cycle
            super().data_received(data)
            if self._is_answering():
                self._waiting = 0
                self._cancel_alarm()
                return
            self._waiting = 0 if self.cycle is not before else self._waiting + len(data)
            if self._alarm is None:
                self._alarm = self.loop.call_later(seconds, self._give_up)
            if self._waiting > longest and self._reads_head():
                self.send_400_response(f"The head of a request has at most {longest:,} bytes.")

        def pause_writing(self) -> None:
            super().pause_writing()
            self._stuck = self.loop.call_later(seconds, self.transport.abort)

        def resume_writing(self) -> None:
            self._cancel_stuck()
            super().resume_writing()

        def connection_lost(self, exc: Exception | None) -> None:
            self._cancel_alarm()
            self._cancel_stuck()
            super().connection_lost(exc)

        def send_400_response(self, msg: str) -> None:
            if msg.startswith("Invalid HTTP"):
                msg = "What came is no request of HTTP/1.1."
            body = dumps(problem(400, msg))
            self.transport.write(
                b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncache-control: no-store\r\n"
                b"content-type: %b\r\ncontent-length: %d\r\n\r\n%b" % (PROBLEM, len(body), body)
            )
            self.transport.close()

        def _is_answering(self) -> bool:
            return self.cycle is not None and not self.cycle.response_complete

        def _reads_head(self) -> bool:
            """Whether it is a head that comes, not the rest of a body that nobody reads."""
            return self.cycle is None or not self.cycle.more_body

        def _cancel_alarm(self) -> None:
            if self._alarm is not None:
                self._alarm.cancel()
                self._alarm = None

        def _cancel_stuck(self) -> None:
            if self._stuck is not None:
                self._stuck.cancel()
                self._stuck = None

        def _give_up(self) -> None:
            self._alarm = None
            if not self._is_answering() and not self.transport.is_closing():
                self.transport.close()

    return Careful
