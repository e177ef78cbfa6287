"""Commits in groups: many observations, one sync, and none acknowledged before it.

    submit(item) -> future          wait, at most `within`, for others that are on their way
    one transaction: item, item, ...        one sync        the futures are done

One thread writes. An item is what belongs together, such as an observation and the note beside it:
all of it is kept or nothing. Where one cannot be kept, the others of its group are, each by itself;
where the disk cannot keep anything, all of them fail and nothing was acknowledged.

A group is waited for as long as it pays: until as many items have come as were on their way lately
(those of the last group and those that came while it was written), or `within` is over, or twice
the time that groups took to write lately. N callers who come again once they are answered, c apart,
and a sync of S give N/(S + N c) items a second where all are waited for, and N/2 a sync where half
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
from typing import NamedTuple, TypeAlias, final

from tidewolf.core.errors import CheckpointError
from tidewolf.storage.database import Database, FateUnknown

Write: TypeAlias = Callable[[Database], object]

_LATELY = 8
"""Groups that are remembered."""
_PATIENCE = 2.0
"""How long a group is waited for at most, in parts of what groups took to write lately."""
_IDLE = 0.5
"""How long the writer sleeps at most, to look whether anybody else wrote. Unit: seconds."""


class _Item(NamedTuple):
    write: Write
    future: Future[None]


@final
class Commits:
    """The one writer of a database.

    Parameters
    ----------
    db : Database
        A connection that nothing else uses.
    within : float
        How long the first of a group may be waited with. Unit: seconds.
    where : str
        What sentences call the database.
    look : callable, optional
        Called before every group, and from time to time: checks whether another process wrote.
    """

    def __init__(
        self, db: Database, within: float, where: str, look: Callable[[], None] | None = None
    ) -> None:
        self._db, self._within, self.where = db, within, where
        self._look = look or (lambda: None)
        self._waiting: deque[_Item] = deque()
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
            self._waiting.append(_Item(write, future))
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
        while True:
            if group := self._group():
                self._write(group)
            elif self._closing:
                return
            else:
                self._idle()

    def _idle(self) -> None:
        """Look, and where something was wrong find out whether it still is."""
        try:
            self._look()
            if self.trouble is not None:
                with self._db.transaction():
                    self._db.execute("UPDATE store SET value = value WHERE name = 'format'")
            self.trouble = None
        except Exception as error:
            self.trouble = self._sentence(error)

    def _sentence(self, error: Exception) -> str:
        if isinstance(error, FateUnknown):
            return str(error)
        return (
            f"Nothing more can be kept in {self.where}: {' '.join(str(error).split()).rstrip('.')}."
            " All that was acknowledged is there; mend that and try again."
        )

    def _group(self) -> list[_Item]:
        """What is written together; empty where nothing came for a while."""
        with self._some:
            if not self._waiting and not self._closing:
                self._some.wait(_IDLE)
            if not self._waiting:
                return []
            if self._within <= 0.0:
                return [self._waiting.popleft()]
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

    def _write(self, group: list[_Item]) -> None:
        failed: dict[int, Exception] = {}
        self.trouble, began = None, monotonic()
        try:
            self._look()
            try:
                self._together(group)
            except FateUnknown:
                raise  # again could be twice
            except Exception:
                failed = self._each(group)
        except Exception as error:
            self.trouble = self._sentence(error)
            failed = {i: CheckpointError(self.trouble) for i in range(len(group))}
        self.syncs, self.items = self.syncs + 1, self.items + len(group)
        self._lately.append(len(group) + len(self._waiting))
        self._took.append(monotonic() - began)
        for i, item in enumerate(group):
            if i in failed:
                item.future.set_exception(failed[i])
            else:
                item.future.set_result(None)

    def _together(self, group: list[_Item]) -> None:
        with self._db.transaction():
            for item in group:
                item.write(self._db)

    def _each(self, group: list[_Item]) -> dict[int, Exception]:
        """The same where something went wrong: each by itself within one transaction, and which
        were not kept. What keeps all of them from being kept is raised.
        """
        failed: dict[int, Exception] = {}
        with self._db.transaction():
            for i, item in enumerate(group):
                try:
                    with self._db.savepoint():
                        item.write(self._db)
                except self._db.errors:
                    raise
                except Exception as error:
                    failed[i] = error
        return failed
