"""Commits in groups: many observations, one sync, and none acknowledged before it.

    submit(item) -> future          wait, at most `within`, for others that are on their way
    one transaction: item, item, ...        one sync        the futures are done

One thread writes. An item is what belongs together, such as an observation and the note beside it:
all of it is kept or nothing. If one cannot be kept, the others of its group are, each by itself;
if the disk cannot keep anything, all of them fail and nothing was acknowledged.

A group is waited for as long as it pays: until as many items have come as were on their way lately
(those of the last group and those that came while it was written), or `within` is over, or twice
the time that groups took to write lately. N callers who come again once they are answered, c apart,
and a sync of S give N/(S + N c) items per second if all are waited for, and N/2 per sync if half
of them come while the others are written; so all are waited for while N c is of the order of S, and
if a sync takes next to no time, no caller waits for one. A single caller never waits for others.
With `within` 0 every item has a sync of its own.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from time import monotonic
from typing import TypeAlias, final

from tidewolf.core.errors import CheckpointError
from tidewolf.storage.database import Database, FateUnknown

Write: TypeAlias = Callable[[Database], object]

_LATELY = 8
"""Groups that are remembered."""
_PATIENCE = 2.0
"""How long a group is waited for at most, in parts of what groups took to write lately."""
_IDLE = 0.5
"""How long the writer sleeps at most before it checks whether others wrote. Unit: seconds."""


@final
class Commits:
    """The one writer of a database.

    Parameters
    ----------
    db : Database
        A connection that nothing else uses.
    within : float
        How long the first of a group may wait for others. Unit: seconds.
    where : str
        The name of the database in messages.
    look : callable, optional
        Called before every group, and from time to time: checks whether another process wrote.
    """

    def __init__(
        self, db: Database, within: float, where: str, look: Callable[[], None] = lambda: None
    ) -> None:
        self._db, self._within, self.where, self._look = db, within, where, look
        self._waiting: deque[tuple[Write, Future[None]]] = deque()
        self._some = threading.Condition(threading.Lock())
        self._lately: deque[int] = deque([1], maxlen=_LATELY)
        self._took: deque[float] = deque([0.0], maxlen=_LATELY)
        self._enough = 1
        """so many waiting items wake the writer"""
        self._closing = False
        self.syncs = self.items = 0
        """groups written so far, and what was in them"""
        self.trouble: str | None = None
        """why the last group was not kept"""
        self._thread = threading.Thread(target=self._run, name="tidewolf commits", daemon=True)
        self._thread.start()

    def submit(self, write: Write) -> Future[None]:
        """Have it written; the future is done when it is on disk."""
        future: Future[None] = Future()
        with self._some:
            if self._closing:
                raise CheckpointError(f"{self.where} is closed: nothing more is kept there.")
            self._waiting.append((write, future))
            if len(self._waiting) >= self._enough:
                self._some.notify()
        return future

    def close(self) -> None:
        """Write what waits, then no more; twice does no harm."""
        with self._some:
            self._closing = True
            self._some.notify()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    # --- the writer -------------------------------------------------------------------------------

    def _run(self) -> None:
        while (group := self._group()) or not self._closing:
            failed: dict[int, Exception] = {}
            began, had_trouble = monotonic(), self.trouble is not None
            try:
                self._look()
                if group:
                    failed = self._written(group)
                elif had_trouble:  # find out whether it is over
                    with self._db.transaction():
                        self._db.execute("UPDATE store SET value = value WHERE name = 'format'")
                self.trouble = None
            except Exception as error:
                self.trouble = self._sentence(error)
                failed = {i: CheckpointError(self.trouble) for i in range(len(group))}
            if group:
                self.syncs, self.items = self.syncs + 1, self.items + len(group)
                self._lately.append(len(group) + len(self._waiting))
                self._took.append(monotonic() - began)
            for i, (_, future) in enumerate(group):
                if i in failed:
                    future.set_exception(failed[i])
                else:
                    future.set_result(None)

    def _sentence(self, error: Exception) -> str:
        if isinstance(error, FateUnknown):
            return str(error)
        return (
            f"Nothing more can be kept in {self.where}: {' '.join(str(error).split()).rstrip('.')}."
            " All that was acknowledged is there; fix that and try again."
        )

    def _group(self) -> list[tuple[Write, Future[None]]]:
        """What is written together; empty if nothing came for a while."""
        with self._some:
            if not self._waiting and not self._closing:
                self._some.wait(_IDLE)
            if self._waiting and self._within <= 0.0:
                return [self._waiting.popleft()]
            if self._waiting:
                end = monotonic() + min(self._within, _PATIENCE * max(self._took))
                self._enough = max(self._lately)
                while len(self._waiting) < self._enough and not self._closing:
                    left = end - monotonic()
                    if left <= 0.0:
                        break
                    self._some.wait(left)
                self._enough = 1
            group = list(self._waiting)
            self._waiting.clear()
            return group

    def _written(self, group: list[tuple[Write, Future[None]]]) -> dict[int, Exception]:
        """Write all of a group; if that fails, each by itself within one transaction. Returns which
        were not kept, and why; what keeps all of them from being kept is raised.
        """
        failed: dict[int, Exception] = {}
        try:
            with self._db.transaction():
                for write, _ in group:
                    write(self._db)
        except FateUnknown:
            raise  # again could be twice
        except Exception:
            with self._db.transaction():
                for i, (write, _) in enumerate(group):
                    try:
                        with self._db.savepoint():
                            write(self._db)
                    except self._db.errors:
                        raise
                    except Exception as error:
                        failed[i] = error
        return failed
