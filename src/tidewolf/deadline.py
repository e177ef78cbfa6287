"""Advisers who have until a deadline: a solver that hangs never blocks a decision.

Every adviser is asked in a thread of its own, all at the same time. Who has not answered when the
deadline comes, or fails, sleeps in this round. While a call that missed its deadline still runs,
its adviser is not asked again, and no further thread is started for it; its answer is not used.

    1. all are asked, as though none before them had answered;
    2. they are heard in order; who was asked otherwise than the answers of those before make it (an
       oracle call less is left, or there are new vertices) is asked again, after its first answer;
    3. the round is closed with what was heard, and who slept goes along with what is known of it.

So what is closed is what asking in order gives where those who slept are left out, bit for bit.
Who is asked twice in a round, because its first answer uses entries that are out, and sleeps the
second time sleeps the first time, too.
Python code that holds the interpreter's lock holds everybody up.
"""

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Self, final

from tidewolf.core.arrays import SILENCE
from tidewolf.experts import base


class Heard(NamedTuple):
    # None: none was asked, they are asked at once
    answers: tuple[base.Proposals | None, ...] | None = None
    # by the name of their first expert: what their error says, None if they were late
    skipped: Mapping[str, str | None] = {}

    def again(self) -> AbstractContextManager[None]:
        if self.answers is None:
            return nullcontext()
        left = iter(self.answers)
        return base.asking(lambda name, adviser, args: next(left))


class Absent(NamedTuple):
    late: int = 0
    failed: int = 0
    # the last round in which it did
    last: int | None = None
    # what its last error said
    error: str | None = None
    # what it did in the last of these rounds
    why: str = ""

    def again(self, number: int, error: str | None) -> Self:
        if number == self.last:
            return self
        if error is None:
            return self._replace(late=self.late + 1, last=number, why="missed the deadline")
        return self._replace(
            failed=self.failed + 1, last=number, error=error, why=f"failed ({error})"
        )

    def in_words(self, who: str) -> str:
        late, failed = (f"{n:,} round{'s' * (n > 1)}" for n in (self.late, self.failed))
        did = (
            *([f"missed the deadline of {late}"] if self.late else []),
            *([f"failed in {failed} ({self.error})"] if self.failed else []),
        )
        return f"{who} {' and '.join(did)}, and slept there; last in round {self.last}."


@final
class Call:
    def __init__(self, adviser: base.Adviser, args: tuple[Any, ...]) -> None:
        self.adviser, self.args = adviser, args
        self.answer: Future[base.Proposals | None] = Future()
        # whether it still ran at a deadline
        self.was_late = False
        threading.Thread(target=self._run, name="tidewolf adviser", daemon=True).start()

    def _run(self) -> None:
        try:
            with SILENCE:
                self.answer.set_result(base.proposed(self.adviser, self.args))
        except Exception as error:  # anybody's policy, or a solver that failed: it has no advice
            self.answer.set_exception(error)

    def is_over(self, until: float | None) -> bool:
        """Whether it has come back by then; None: waits for as long as that takes."""
        wait([self.answer], None if until is None else max(0.0, until - time.monotonic()))
        return self.answer.done()

    def is_of(self, adviser: base.Adviser, args: tuple[Any, ...]) -> bool:
        return self.adviser is adviser and all(map(_same, self.args, args))


@final
class Advisers:
    """Asks the advisers of a session: at once, until a decision had a deadline or one failed; each
    in a thread of its own from then on.
    """

    def __init__(
        self, deadline: float | None = None, absent: Mapping[str, Absent] | None = None
    ) -> None:
        self._deadline, self.in_threads = deadline, deadline is not None
        # advisers that were skipped, by the name of their first expert
        self.absent = dict(absent or {})
        # the last one to each
        self._calls: dict[str, Call] = {}

    def copy(self) -> Self:
        return Advisers(self._deadline, self.absent)

    @property
    def is_busy(self) -> bool:
        return any(not call.is_over(0.0) for call in self._calls.values())

    def until(self, deadline: float | None = None) -> float | None:
        """When this deadline ends, or else the last one; None: no deadline."""
        deadline = self._deadline if deadline is None else deadline
        return None if deadline is None else time.monotonic() + deadline

    def limit(self, deadline: float) -> None:
        self._deadline, self.in_threads = deadline, True

    def failed(self, failed: base.AdviserFailed, number: int) -> None:
        self.in_threads = True
        self.skip({failed.name: base.in_words(failed.error)}, number)

    def skip(self, skipped: Mapping[str, str | None], number: int) -> None:
        for name, error in skipped.items():
            self.absent[name] = self.absent.get(name, Absent()).again(number, error)

    def hear(self, commit_next: Callable[[], object], until: float | None) -> Heard:
        """The answers of the advisers that `commit_next` asks, until then by the monotonic clock;
        None: in all the time they need.
        """
        if not self.in_threads:
            return Heard()
        heard: list[tuple[str, base.Proposals | None]] = []
        skipped: dict[str, str | None] = {}

        def begin(name: str, adviser: base.Adviser, args: tuple[Any, ...]) -> None:
            call = self._calls.get(name)
            if call is None or (not call.is_of(adviser, args) and call.is_over(0.0)):
                self._calls[name] = Call(adviser, args)

        def listen(
            name: str, adviser: base.Adviser, args: tuple[Any, ...]
        ) -> base.Proposals | None:
            if name in skipped:
                heard.append((name, None))
                return None
            call = self._calls.get(name)
            is_new = call is None or not call.is_of(adviser, args)
            if call is None or (is_new and call.is_over(0.0 if call.was_late and until else until)):
                call = self._calls[name] = Call(adviser, args)
            over = call.is_of(adviser, args) and call.is_over(until)
            call.was_late = not over
            error: Any = call.answer.exception() if over else None
            if error is not None and base.is_refusal(error, args):
                raise error
            answer = call.answer.result() if over and error is None else None
            if answer is None:
                skipped[name] = None if error is None else base.in_words(error)
            heard.append((name, answer))
            return answer

        with base.asking(begin):
            commit_next()
        with base.asking(listen):
            commit_next()
            while any(answer is not None and name in skipped for name, answer in heard):
                heard.clear()
                commit_next()
        return Heard(tuple(answer for _, answer in heard), skipped)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple) and type(a) is tuple:
        return len(a) == len(b) and all(one is other for one, other in zip(a, b, strict=True))
    return a is b or (isinstance(a, int) and a == b)
