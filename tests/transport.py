"""A transport to PostgreSQL that can be cut at any message: a socket in the middle."""

import itertools
import select
import socket
import threading
from contextlib import suppress

SOCKET = ".s.PGSQL.5432"
"""PostgreSQL's name for it."""
BEAT = b"pg_backend_pid"
"""In what a server asks each second, which counts as no message."""


def never(number, said):
    return False


class Transport:
    """Forwards what clients say at a socket in `folder` to that in `to`. `before` and `after` judge
    each message with its number: where one says True its connection ends, with the message not
    delivered, or delivered, done, and not answered. While it is `down` nobody is connected.
    """

    def __init__(self, folder, to):
        self.folder, self._to = folder, to
        self.before = self.after = never
        self.down = False
        self.count = itertools.count()
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(folder / SOCKET))
        self._door.listen()
        self._open = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        with suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        self.cut()

    def cut(self):
        """End every connection."""
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _accept(self):
        with suppress(OSError):
            while True:
                client, _ = self._door.accept()
                if self.down:
                    client.close()
                    continue
                threading.Thread(target=self._forward, args=(client,), daemon=True).start()

    def _forward(self, client):
        with client, socket.socket(socket.AF_UNIX) as server, suppress(OSError):
            server.connect(str(self._to / SOCKET))
            pair = [client, server]
            self._open += pair
            is_last = False
            while True:
                for one in select.select(pair, [], [])[0]:
                    said = one.recv(1 << 20)
                    if one is client:
                        number = -1 if BEAT in said else next(self.count)
                        if self.before(number, said):
                            return
                        is_last = is_last or self.after(number, said)
                        server.sendall(said)
                    elif not is_last:
                        client.sendall(said)
                    if not said or (is_last and one is server):
                        return
