"""Rows taken one by one, each answered with the decision that follows it.

    note the row  ->  observe it (from here on it is kept)  ->  decide the next round  ->  answer

Whatever is refused leaves everything as it was. The same row twice, by its time or its number, is
the same row: it gets the same answer, and nothing is learned twice. The same time with other
values is refused. What comes after a kill is what would have come without it.

A learner that goes by the clock is told when the coming row is expected, from the times before it:
a decision knows nothing of its own row, not even when it comes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self, final

import numpy as np

from tidewolf.core.arguments import as_path, shown
from tidewolf.core.batch import Batch
from tidewolf.core.errors import InvalidInput, TidewolfError
from tidewolf.core.round_info import RoundInfo
from tidewolf.core.types import Array
from tidewolf.core.values import identity
from tidewolf.live.clock import WINDOW, Time, expected
from tidewolf.live.entries import (
    Entries,
    Reads,
    follows_clock,
    given_demands,
    paths_of,
    value_at,
    violation_at,
)
from tidewolf.live.lines import Line
from tidewolf.live.row_log import NextRound, RowLog, Taken
from tidewolf.methods.base import Learner
from tidewolf.session import Session


@final
class LiveRunner:
    """A durable session that is fed with rows and answers with decisions.

    Parameters
    ----------
    reader : RoundReader
        Who makes the functions of a round of its numbers.
    learner : Learner
        Who decides.
    database : str or path
        Where all of it is kept; a new one where there is no file.
    read_only : bool, default False
        Whether to look only, such as while another process takes rows.

    Raises
    ------
    InUse
        While another process takes rows for the same file.
    OtherSettings
        Where the file was written by a learner with other settings.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tidewolf.experiments.round_reader import RoundReader
    >>> from tidewolf.live import LiveRunner, live_learner, parse
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "two.toml").write_text(
    ...     '[set]\\nkind = "Simplex"\\nn = 2\\n[stream]\\ncosts = "costs.csv"\\n'
    ... )
    >>> experiment = tw.experiments.load(folder / "two.toml")
    >>> reader = RoundReader(experiment)
    >>> with LiveRunner(reader, live_learner(experiment, reader.K), folder / "two.db") as runner:
    ...     runner.upcoming()["decision"]
    ...     answer = runner.take(parse('{"costs": [1.0, 0.0]}'))
    {'entry 0': 0.5, 'entry 1': 0.5}
    >>> answer["round"], answer["cost"], answer["decision"]["entry 1"] > 0.5
    (2, 0.5, True)
    """

    def __init__(
        self,
        reader: Reads,
        learner: Learner[Any],
        database: str | os.PathLike[str],
        *,
        read_only: bool = False,
    ) -> None:
        self.reader, self.learner = reader, learner
        path = as_path(database, "The database")
        self._read_only = read_only
        self._entries = Entries(reader)
        self._clock = follows_clock(learner)
        self.session: Session[Any]
        if read_only and not path.exists():
            self.session, self._row_log = Session(learner), None
        else:
            self.session = Session.open(path, learner, read_only=read_only)
            self._row_log = self._opened(path)
        times = [] if self._row_log is None else self._row_log.last_times(self.rounds)
        self._times: list[Time] = times
        self._last = None if self._row_log is None else self._row_log.row(self.rounds)
        self._info: dict[str, Any] = {}
        """what the coming round is decided on"""
        self._announced: Time | None = None
        """when that is, where a line said so"""
        self._text: str | None = None
        """the answer that stands, as JSON"""
        self._go_on()

    def _opened(self, path: Path) -> RowLog:
        try:
            row_log = RowLog(path, self.rounds, read_only=self._read_only)
        except BaseException:
            self.session.close()
            raise
        try:
            if self.reader.network is not None and not self._read_only:
                row_log.require_demands(self.reader.network.volumes.tolist())
        except BaseException:
            row_log.close()
            self.session.close()
            raise
        return row_log

    @property
    def rounds(self) -> int:
        """Rows taken so far."""
        return self.session.rounds

    def next_decision(self) -> dict[str, Any]:
        """The decision of the coming round: the answer to the last row.

        Returns
        -------
        dict
            The `round` (from 1), the `decision` by name, `paths` where it is a flow, how far it
            `moved`, `why`, and the `cost` and `violation` of the round before it; `after` is the
            time of the last row and `time` that of the round, as far as they are known.
        """
        found: dict[str, Any] = json.loads(self.next_text())
        return found

    def next_text(self) -> str:
        """The same as a line of JSON, without its end."""
        if self._text is None:
            self._text = json.dumps(self._answer(), ensure_ascii=False, allow_nan=False)
        return self._text

    def take(self, line: Line) -> dict[str, Any]:
        """Take a row, or what is known of the coming round.

        Parameters
        ----------
        line : Line
            What it says.

        Returns
        -------
        dict
            The decision that follows, as `upcoming` has it; that of a row that was taken before is
            the one that was answered then.

        Raises
        ------
        InvalidInput
            Where the row cannot be used, or was taken before with other values; nothing has
            changed then.
        CheckpointError
            Where it could not be kept.
        """
        found: dict[str, Any] = json.loads(self.take_text(line))
        return found

    def take_text(self, line: Line) -> str:
        """The same, answered with a line of JSON."""
        if not line.is_row:
            return self._announce(line)
        number = self._which(line)
        losses, limits = self._functions(line)
        played = (
            None if line.played is None else self._entries.point(line.played, "What was played")
        )
        info = self._checked(line.info)
        content = identity((losses, limits, played, json.dumps(info, sort_keys=True)))
        if number <= self.rounds:
            return self._again(number, line, content)
        if self._clock and line.time is None:
            raise InvalidInput(
                "The row has no time, and the learner follows the clock (a season, or advice, of a "
                "duration such as 1d): give it, or give the period as a number of rounds."
            )
        self._take(line, number, (losses, limits), played, info, content)
        return self.next_text()

    def close(self) -> None:
        """Let go of the file; twice does no harm."""
        if self._row_log is not None:
            self._row_log.close()
        self.session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- rows -------------------------------------------------------------------------------------

    def _which(self, line: Line) -> int:
        """The number of the round that a row speaks of, from 1: the coming one, or one that was
        taken.
        """
        upcoming, last = self.rounds + 1, self._times[-1] if self._times else None
        if line.round is not None:
            self._require_agreeing(line, line.round, upcoming, last)
            return line.round
        if line.time is None:
            if last is not None:
                raise InvalidInput(
                    f"The row has neither a time nor a round, and the rows before it have times, "
                    f"the last one {last.said}: give one of them."
                )
            return upcoming
        if last is None or line.time.stamp > last.stamp:
            return upcoming
        found = self._notes.row_at(line.time)
        if found is None:
            raise InvalidInput(
                f"The time {line.time.said} does not come after that of the last row, {last.said}: "
                "rows are taken in the order of their times."
            )
        return found.round

    def _require_agreeing(self, line: Line, number: int, upcoming: int, last: Time | None) -> None:
        """Refuse a round that has not come, or was at another time."""
        if number > upcoming:
            raise InvalidInput(
                f"The row is of round {number}, and round {upcoming} is the coming one: send the "
                "rows before it first."
            )
        time = line.time
        if time is None:
            return
        if number == upcoming and last is not None and time.stamp <= last.stamp:
            raise InvalidInput(
                f"The row is of round {number}, which comes, and its time {time.said} does not "
                f"come after that of the last row, {last.said}."
            )
        found = self._notes.row(number) if number < upcoming else None
        if found is not None and found.time is not None and found.time.stamp != time.stamp:
            raise InvalidInput(
                f"The row is of round {number} at {time.said}, and that round was at "
                f"{found.time.said}: nothing was learned."
            )

    def _functions(self, line: Line) -> tuple[Batch, Batch]:
        try:
            return self.reader.functions(line.numbers, "The row")
        except InvalidInput as error:  # it reads a row as it does a table, which has lines
            raise type(error)(str(error).replace(", line 1:", ":")) from None

    def _again(self, number: int, line: Line, content: str) -> str:
        """The answer to a row that was taken before."""
        found = self._notes.row(number)
        at = f" of {line.time.said}" if line.time is not None else ""
        if found is None:
            raise InvalidInput(
                f"The row{at} is of round {number}, which was observed without being noted here: "
                "nothing was learned."
            )
        if found.content != content:
            raise InvalidInput(
                f"The row{at or f' of round {number}'} was taken already, with other values, which "
                "stand: nothing was learned."
            )
        answer = None if number == self.rounds else self._notes.answer(number)
        return self.next_text() if answer is None else answer

    def _take(
        self,
        line: Line,
        number: int,
        functions: tuple[Batch, Batch],
        played: Array | None,
        info: dict[str, Any],
        content: str,
    ) -> None:
        """A row that is new."""
        losses, limits = functions
        x = self.session.play() if played is None else played
        row = Taken(
            number,
            line.time,
            content,
            value_at(losses, x),
            violation_at(limits, x),
            given_demands(self.reader, line.numbers, self._last and self._last.demands),
        )
        times = self._times if line.time is None else [*self._times, line.time][-WINDOW - 1 :]
        upcoming = self._with_time(info, expected(times))
        answer = self.next_text() if number > 1 else None
        self._notes.note(row, NextRound(upcoming) if upcoming else None, answer)
        self.session.observe(loss=losses, constraint=limits, played=played)
        self._times, self._last, self._text = times, row, None
        self._info, self._announced = {}, None
        if upcoming:
            self._decide(upcoming)

    # --- what is known of the coming round --------------------------------------------------------

    def _announce(self, line: Line) -> str:
        """Decide the coming round anew, with what is known of it now."""
        upcoming, last = self.rounds + 1, self._times[-1] if self._times else None
        if line.round is not None and line.round != upcoming:
            raise InvalidInput(
                f"The line says what is known of round {line.round}, and round {upcoming} is the "
                "coming one."
            )
        if line.time is not None and last is not None and line.time.stamp <= last.stamp:
            raise InvalidInput(
                f"The line says what is known of {line.time.said}, and the last row was at "
                f"{last.said}: what was decided stands. A row that was taken has costs, or what "
                "else it turned out to be."
            )
        time = line.time or self._announced or expected(self._times)
        info = self._with_time(self._checked(line.info), time)
        before = NextRound(self._info, self._announced)
        self._notes.note_upcoming(upcoming, NextRound(info, line.time or self._announced))
        if info != self._info:
            try:
                self._decide(info)
            except TidewolfError:
                self._notes.note_upcoming(upcoming, before)
                self._decide(before.info)
                raise
        self._announced, self._text = line.time or self._announced, None
        return self.next_text()

    def _go_on(self) -> None:
        """The coming round, as it was decided, or was about to be."""
        if self._row_log is None:
            return
        info, self._announced = self._row_log.next_round(self.rounds + 1) or NextRound({})
        if self._read_only:  # what it was decided on is in the file
            self._info = info
        elif info:
            try:
                self._decide(info)
            except TidewolfError:  # a line that was never answered
                self._decide(self._with_time({}, expected(self._times)))

    def _decide(self, info: dict[str, Any]) -> None:
        """Decide the coming round on this and nothing else."""
        try:
            self.session.play(**self._play_arguments(info))
        except InvalidInput:  # it was decided on something else
            self.session.rollback(self.session.round)
            self.session.play(**self._play_arguments(info))
        self._info, self._text = info, None

    def _play_arguments(self, info: Mapping[str, Any]) -> dict[str, Any]:
        """What is known, as a session is told it."""
        arguments = dict(info)
        if "advice" in arguments:
            arguments["advice"] = {
                name: np.array(point).reshape(self.reader.K.shape)
                for name, point in arguments["advice"].items()
            }
        return arguments

    def _with_time(self, info: dict[str, Any], time: Time | None) -> dict[str, Any]:
        if not self._clock or time is None:
            return info
        return {**info, "time": time.said}

    def _checked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What is known of the coming round as plain data, refused where nothing could be decided
        on it.
        """
        info = dict(given)
        if "unavailable" in info:
            info["unavailable"] = self._entries.unavailable(info["unavailable"])
        if "advice" in info:
            if not isinstance(info["advice"], Mapping):
                raise InvalidInput(
                    f"Advice is points by name, such as {{'incumbent': ...}}, not "
                    f"{shown(info['advice'])}."
                )
            info["advice"] = {
                name: self._entries.point(point, f"The advice {name!r}").reshape(-1).tolist()
                for name, point in info["advice"].items()
            }
        info = {key: value for key, value in info.items() if value != []}
        if info:
            self.learner.act(self.session.state, RoundInfo(**self._play_arguments(info)))
        return info

    @property
    def _notes(self) -> RowLog:
        if self._row_log is None or self._read_only:
            raise InvalidInput("The database was opened to look: it takes no rows.")
        return self._row_log

    # --- answers ----------------------------------------------------------------------------------

    def _answer(self) -> dict[str, Any]:
        x = self.session.play()
        why = self.session.explain(names=self._entries.names)
        time = self._announced or expected(self._times)
        answer: dict[str, Any] = {"round": self.session.round + 1}
        if time is not None:
            answer["time"] = time.said
        if self._times:
            answer["after"] = self._times[-1].said
        answer["decision"] = self._entries.named(x)
        row = self._last
        if (paths := paths_of(self.reader, x, None if row is None else row.demands)) is not None:
            answer["paths"] = paths
        return answer | {
            "moved": why.moved,
            "why": why.in_short(),
            "cost": None if row is None else row.cost,
            "violation": None if row is None else row.violation,
        }
