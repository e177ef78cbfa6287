"""`tidewolf live`: rows in, decisions out.

Every line is answered with one line, a decision or {"error": ..., "line": ...}, so that the sender
can wait for the answer. A refusal is also written to stderr.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import textwrap
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidewolf.cli.screen import Stop, Stopped, flag, opt, stoppable
from tidewolf.core.errors import CheckpointError, Interrupted, InUse, InvalidInput, TidewolfError

if TYPE_CHECKING:
    from tidewolf.experiments.building import RoundReader
    from tidewolf.live import LiveRunner

_MOST_SHOWN = 8
"""Entries, or paths, of a decision that a terminal shows."""
_LEAST_SHOWN = 5e-5
"""Smaller ones are not shown."""


def live_command(
    experiment: Annotated[
        Path, typer.Argument(metavar="FILE", help="An experiment file (`tidewolf new network`).")
    ],
    db: Annotated[Path, opt("DB", "The file that keeps everything, such as routing.db.", "--db")],
    once: Annotated[bool, flag("Print the next decision and stop.", "--once")] = False,
    follow: Annotated[
        bool, flag("Take the rows of the file's own tables, as they grow.", "--follow")
    ] = False,
    every: Annotated[float, opt("SECONDS", "How often --follow reads the tables.")] = 1.0,
    as_json: Annotated[bool, flag("Print lines of JSON, also on a terminal.", "--json")] = False,
) -> None:
    """Turn rows into decisions, one by one, for as long as they come.

    Reads rows as lines of JSON and answers each with the decision of the next round: {"round",
    "time", "after", "decision", "paths", "moved", "why", "cost", "violation"}. Line k is the
    decision of round k + 1, written after row k; --once prints the next decision, at first that of
    round 1, and reads nothing. time is that of the next round, if it is known; after that of the
    row; cost and violation are those of the decision before. A row has costs, and perhaps
    capacities, demands, weights and budget, by name or as lists; time or round (from 1); played,
    if that was not the decision; and unavailable, the entries that are out in the next round. A
    line with unavailable alone has the next round decided again.

    Everything is kept in DB: killed at any moment, the same command resumes (to the bit on the same
    machine). The same row twice is the same row and gets the same answer. The same time with other
    values, or a line that is not a row, is answered with {"error", "line"} and changes nothing.
    --follow takes the tables of [stream] instead; a row counts once every table has it. With --once
    it takes the rows that are there and prints the next decision. The first of the file's learners
    decides, Ensemble if it names none.

    \b
    Examples:
      tidewolf live network.toml --db routing.db < rows.jsonl > decisions.jsonl
      tidewolf live network.toml --db routing.db --once
      tidewolf live network.toml --db routing.db --follow --every 60
    """
    from tidewolf.experiments import load
    from tidewolf.experiments.building import RoundReader

    if not 0.0 < every < float("inf"):
        raise InvalidInput(f"--every is a number of seconds above 0, not {every:g}.")
    reader, shown = RoundReader(load(experiment)), _Screen(as_json)
    try:
        with stoppable() as stop, _opened(reader, db, once and not follow) as runner:
            with suppress(Stopped):
                if follow:
                    _follow(runner, shown, reader, every, once, stop)
                elif not once:
                    _answer_lines(runner, shown, stop)
            if once:
                shown.decision(runner.answer())
            rounds = runner.rounds
    except BrokenPipeError:  # the reader of the answers is gone; every row that was taken is kept
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return
    if stop():
        report = f"Stopped after {rounds:,} row{'s' * (rounds != 1)}; the same command resumes."
        if signal.SIGINT in stop.signals:
            raise Interrupted(report)
        sys.stderr.write(f"{report}\n")


def _opened(reader: RoundReader, db: Path, read_only: bool) -> LiveRunner:
    from tidewolf.live import LiveRunner, live_learner

    learner = live_learner(reader)
    if read_only and db.exists():  # unless another process writes, or no process can
        with suppress(InUse, CheckpointError):
            return LiveRunner(reader, learner, db)
    return LiveRunner(reader, learner, db, read_only=read_only)


def _answer_lines(runner: LiveRunner, shown: _Screen, stop: Stop) -> None:
    """Answer the lines of stdin."""
    from tidewolf.live import parse
    from tidewolf.live.lines import LONGEST

    if sys.stdin is None:  # it was closed before the command began
        return
    if sys.stdin.isatty():
        sys.stderr.write('Rows are lines such as {"costs": {"SEA > DEN": 1.2}}; Ctrl-D ends.\n')
    number = 0
    while not stop():
        number += 1
        with stop.waiting():
            text = rest = sys.stdin.buffer.readline(LONGEST + 1)
            while len(rest) > LONGEST and not rest.endswith(b"\n"):
                rest = sys.stdin.buffer.readline(LONGEST + 1)
        if not text:
            return
        if not text.strip():
            continue
        try:
            shown.decision(runner.take(parse(text)))
        except TidewolfError as error:
            shown.refusal(str(error), number)


def _follow(
    runner: LiveRunner, shown: _Screen, reader: RoundReader, every: float, once: bool, stop: Stop
) -> None:
    """Take the rows of the experiment's tables as they grow."""
    from tidewolf.experiments import Tables
    from tidewolf.experiments.building import TABLES
    from tidewolf.live import Follower

    stream = reader.experiment.stream
    assert isinstance(stream, Tables)
    if stream.context is not None or stream.advice:
        raise InvalidInput("--follow takes no context or advice: send rows as lines of JSON.")
    paths = {name: path for name in TABLES if (path := getattr(stream, name)) is not None}
    follower = Follower(paths, reader.experiment.files, stream.gaps)
    while not stop():
        for grown in follower.poll():
            before = runner.rounds
            if grown.has_gap:
                sys.stderr.write(f"{grown.place}: a number is missing; the row is not used.\n")
                continue
            try:
                answer = runner.take(grown.line)
            except InvalidInput as error:
                raise type(error)(f"{grown.place}: {error}") from None
            if runner.rounds > before and not once:
                shown.decision(answer)
            if stop():
                return
        if once:
            return
        with stop.waiting():
            time.sleep(every)


class _Screen:
    """Answers as lines of JSON, or as text on a terminal."""

    def __init__(self, as_json: bool) -> None:
        self._as_text = sys.stdout.isatty() and not as_json

    def decision(self, text: str) -> None:
        self._write(_in_words(json.loads(text)) if self._as_text else text)

    def refusal(self, sentence: str, line: int) -> None:
        sys.stderr.write(f"Line {line}: {sentence}\n")
        if not self._as_text:
            self._write(json.dumps({"error": sentence, "line": line}, ensure_ascii=False))

    def _write(self, text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def _in_words(answer: dict[str, Any]) -> str:
    """An answer for a terminal."""
    first = f"Round {answer['round']:,}"
    if "time" in answer:
        first += f", {answer['time']}"
    if answer["cost"] is not None:
        cost, violation = answer["cost"], answer["violation"]
        first += f"; the round before cost {cost:.4g}, violation {violation:.3g}"
    shares = [(share, name) for name, share in answer["decision"].items()]
    if "paths" in answer:
        shares = [(one["share"], one["path"]) for one in answer["paths"]]
    shares.sort(key=lambda one: -abs(one[0]))
    listed = [one for one in shares if abs(one[0]) >= _LEAST_SHOWN][:_MOST_SHOWN]
    lines = [first, *(f"  {share:9.4f}  {name}" for share, name in listed)]
    why = textwrap.wrap(answer["why"], 98, break_on_hyphens=False)
    return "\n".join([*lines, *(f"  {line}" for line in why)])
