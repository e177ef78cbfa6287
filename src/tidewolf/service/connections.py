"""Connections with limits on time, size and number, so that no client can exhaust a server; and
uvicorn's server, which is ready once it has prepared and ends with exit code 0.

uvicorn waits for the head of a request for as long as it takes, and takes as much of it as comes.
Here a head has SECONDS to arrive and at most LONGEST bytes, and so has what may come behind a body;
a connection that keeps sending a body which is no longer read is closed after the same time,
and so is one whose client does not read what it is sent. There are at most MOST connections:
for one more, the one that has been idle for longest is closed, or the new one if none is idle.
What is no HTTP is answered with a problem.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, ClassVar

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from tidewolf.service.requests import PROBLEM, Traffic, dumps, problem

# How long the head of a request, or a client that reads nothing, may take.
SECONDS = 10.0
# Bytes of the head of a request, at most.
LONGEST = 1 << 16
# Connections, at most.
MOST = 2000
# Bytes around each byte of a body that comes in the smallest of pieces.
_FRAMING = 8
_Base: Any = AutoHTTPProtocol


def careful_protocol(
    *, seconds: float = SECONDS, longest: int = LONGEST, most: int = MOST
) -> type[asyncio.Protocol]:
    return type("Careful", (Careful,), {"seconds": seconds, "longest": longest, "most": most})


class Careful(_Base):  # type: ignore[misc]
    seconds: ClassVar[float]
    longest: ClassVar[int]
    most: ClassVar[int]

    _alarm: asyncio.TimerHandle | None = None
    _stuck: asyncio.TimerHandle | None = None
    # Whether a request has begun, and not all of it has come.
    _open = False
    # Bytes of it after the piece that it began in, and those that are its body.
    _came = _body = 0
    # When something came last.
    _heard = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._heard = self.loop.time()
        there = [one for one in self.connections if not one.transport.is_closing()]
        if len(there) > self.most:  # the one that has been idle for longest, this one at last
            idle = (one for one in there if not one._is_answering())
            min(idle, key=lambda one: one._heard).transport.close()
        self._alarm = self.loop.call_later(self.seconds, self._give_up)

    def data_received(self, data: bytes) -> None:
        self._heard = self.loop.time()
        self._came += len(data)
        super().data_received(data)
        if self._is_answering():
            self._cancel("_alarm")
        elif self._alarm is None:
            self._alarm = self.loop.call_later(self.seconds, self._give_up)
        if self._open and self._came - self._body > self.longest + _FRAMING * self._body:
            if self._is_answering():  # it comes behind a body, and an answer is on its way
                self.transport.abort()
            else:
                self._refuse_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._open, self._came, self._body = True, 0, 0

    def on_headers_complete(self) -> None:
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > (
            self.longest
        ):
            self._refuse_head()
            raise ValueError("the head is too long")  # it ends the parser
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._body += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._open = False
        super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stuck = self.loop.call_later(self.seconds, self.transport.abort)

    def resume_writing(self) -> None:
        self._cancel("_stuck")
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel("_alarm")
        self._cancel("_stuck")
        super().connection_lost(exc)

    def _refuse_head(self) -> None:
        self.send_400_response(f"its head has over {self.longest:,} bytes.")

    def send_400_response(self, msg: str) -> None:
        if self.transport.is_closing():
            return
        body = dumps(problem(400, f"What came is no request of HTTP/1.1 that is taken: {msg}"))
        self.transport.write(
            b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncache-control: no-store\r\n"
            b"content-type: %b\r\ncontent-length: %d\r\n\r\n%b"
            % (PROBLEM.encode(), len(body), body)
        )
        self.transport.close()

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _cancel(self, which: str) -> None:
        if (timer := getattr(self, which)) is not None:
            timer.cancel()
            setattr(self, which, None)

    def _give_up(self) -> None:
        self._alarm = None
        if not self._is_answering() and not self.transport.is_closing():
            self.transport.close()


class Server(uvicorn.Server):
    """It swallows the signals that it obeys: stopping on request is no failure.

    `prepare` runs in a thread of its own, because requests that come meanwhile are answered.
    """

    def __init__(
        self, config: uvicorn.Config, traffic: Traffic, address: str, prepare: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._traffic, self._address, self._prepare = traffic, address, prepare

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        threading.Thread(target=self._get_ready, name="tidewolf-prepare", daemon=True).start()

    def _get_ready(self) -> None:
        with suppress(Exception):  # what cannot be prepared is refused when it is asked for
            self._prepare()
        if not self.should_exit:
            self._traffic.ready = True
            sys.stdout.write(f"tidewolf serves {self._address}\n")
            sys.stdout.flush()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:
            os._exit(128 + sig)
        self._traffic.ready = False
        self.should_exit = True
