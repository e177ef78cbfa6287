"""`tidewolf live`: rows in, decisions out.

Every line that comes is answered with one line, a decision or {"error": ..., "line": ...}, so that
whoever sends can wait for the answer. What is refused is also said on stderr.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidewolf.core.errors import CheckpointError, Interrupted, InUse, InvalidInput, TidewolfError

if TYPE_CHECKING:
    from tidewolf.experiments import Tables
    from tidewolf.experiments.round_reader import RoundReader
    from tidewolf.live import LiveRunner
    from tidewolf.live.following import Grown
    from tidewolf.live.pipes import Piece

WIDTH = 100
_MOST_SHOWN = 8
"""Entries, or paths, of a decision that a terminal shows."""
_LEAST_SHOWN = 5e-5
"""Smaller ones are counted, not shown."""


def live_command(
    experiment: Annotated[
        Path, typer.Argument(metavar="FILE", help="An experiment file (`tidewolf new network`).")
    ],
    db: Annotated[
        Path, typer.Option("--db", metavar="DB", help="Where all of it is kept: routing.db, say.")
    ],
    once: Annotated[
        bool, typer.Option("--once", help="Print the coming decision and stop; read no rows.")
    ] = False,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="Take the rows of the file's own tables, as they grow."),
    ] = False,
    every: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="How often --follow looks whether they grew."),
    ] = 1.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Lines of JSON, also on a terminal.")
    ] = False,
) -> None:
    """Turn rows into decisions, one by one, for as long as they come.

    Prints the decision of the coming round, then reads rows as lines of JSON, and answers each with
    the decision that follows it: {"round", "time", "after", "decision", "paths", "moved", "why",
    "cost", "violation"}, where time is that of the coming round as far as it is known, after that
    of the row, cost and violation what the decision before turned out to have. A row has costs, and
    perhaps capacities, demands, weights and budget, by name or as lists; time or round (from 1);
    played, where that was not the decision; and unavailable, what is out in the coming round. A
    line with unavailable alone has the coming round decided anew.

    What was answered is kept in DB: killed at any moment, the same command resumes (to the bit on
    the same machine). The same row twice is the same row and gets the same answer; the same time
    with other values, or a line that is no row, is answered with {"error", "line"}, changes
    nothing, and the next line counts. --follow takes the tables of [stream] instead; a row counts
    once every table has it. With --once it takes what is there and prints the decision that
    follows. The first of the file's learners decides, Ensemble if it names none.

    \b
    Examples:
      tidewolf live network.toml --db routing.db < rows.jsonl > decisions.jsonl
      tidewolf live network.toml --db routing.db --once
      tidewolf live network.toml --db routing.db --follow --every 60
    """
    from tidewolf.experiments import load
    from tidewolf.experiments.round_reader import RoundReader

    if not 0.0 < every < float("inf"):
        raise InvalidInput(f"--every is a number of seconds above 0, not {every:g}.")
    requested = load(experiment)
    reader = RoundReader(requested)
    shown = _Screen(as_json)
    try:
        with _stoppable() as stop, _opened(reader, db, once and not follow) as runner:
            if follow:
                _follow(runner, shown, reader, every, once, stop)
            elif once:
                shown.decision(runner.next_text())
            else:
                _answer_lines(runner, shown, stop)
            rounds = runner.rounds
    except BrokenPipeError:  # nobody reads any more: what was taken is kept
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return
    if stop.requested:
        said = f"Stopped after {rounds:,} row{'s' * (rounds != 1)}; the same command goes on."
        if signal.SIGINT in stop.requested:
            raise Interrupted(said)
        sys.stderr.write(f"{said}\n")


def _opened(reader: RoundReader, db: Path, to_look: bool) -> LiveRunner:
    """The desk; to look where only that is asked and somebody else writes, or nothing is there."""
    from tidewolf.live import LiveRunner, live_learner

    learner = live_learner(reader.experiment, reader.K, reader.network, reader.names)
    if not to_look:
        return LiveRunner(reader, learner, db)
    if db.exists():
        try:
            return LiveRunner(reader, learner, db)
        except InUse:
            pass
        except CheckpointError:
            if os.access(db, os.W_OK) and os.access(db.resolve().parent, os.W_OK):
                raise
    return LiveRunner(reader, learner, db, read_only=True)


def _answer_lines(runner: LiveRunner, shown: _Screen, stop: _Stop) -> None:
    """Answer the lines of stdin."""
    from tidewolf.live.pipes import pieces

    shown.decision(runner.next_text())
    if sys.stdin is None:  # it was closed before we began
        return
    if sys.stdin.isatty():
        sys.stderr.write('Rows are lines such as {"costs": {"SEA > DEN": 1.2}}; Ctrl-D ends.\n')
    for piece in pieces(sys.stdin.fileno(), lambda: bool(stop.requested)):
        if not piece.text.strip():
            continue
        try:
            answer = _answer_line(runner, piece)
        except TidewolfError as error:
            shown.refusal(str(error), piece.number)
        else:
            shown.decision(answer)


def _answer_line(runner: LiveRunner, piece: Piece) -> str:
    from tidewolf.live import parse

    try:
        line = parse(piece.text)
    except InvalidInput:
        if piece.is_whole:
            raise
        raise InvalidInput("The last line ends in the middle: send it whole.") from None
    return runner.take_text(line)


def _follow(
    runner: LiveRunner, shown: _Screen, reader: RoundReader, every: float, once: bool, stop: _Stop
) -> None:
    """Take the rows of tables as they grow."""
    from tidewolf.experiments import Tables
    from tidewolf.live import Follower

    requested = reader.experiment
    assert isinstance(requested.stream, Tables)
    follower = Follower(_tables(requested.stream), requested.files, requested.stream.gaps)
    if not once:
        shown.decision(runner.next_text())
    while not stop.requested:
        for grown in follower.poll():
            if grown.gap:
                shown.note(f"{grown.gap}: the row is not learned from; what was decided stands.")
                continue
            answer = _taken(runner, grown)
            if answer is not None and not once:
                shown.decision(answer)
            if stop.requested:
                return
        if once:
            shown.decision(runner.next_text())
            return
        stop.wait(every)


def _tables(stream: Tables) -> dict[str, Path]:
    """The tables of an experiment that rows are made of."""
    from tidewolf.experiments.experiment import TABLES

    if stream.context is not None or stream.advice:
        raise InvalidInput(
            "--follow knows nothing of a round before its row: [stream] has a context, or advice, "
            "which are sent as lines of JSON."
        )
    return {name: path for name in TABLES if (path := getattr(stream, name)) is not None}


def _taken(runner: LiveRunner, grown: Grown) -> str | None:
    """The answer to a row of the tables; None where it was taken before."""
    before = runner.rounds
    try:
        answer = runner.take_text(grown.line)
    except InvalidInput as error:
        raise type(error)(f"{grown.place}: {error}") from None
    return answer if runner.rounds > before else None


class _Screen:
    """Where answers go: lines of JSON, or text on a terminal."""

    def __init__(self, as_json: bool) -> None:
        self._as_text = sys.stdout.isatty() and not as_json

    def decision(self, text: str) -> None:
        self._write("\n".join(_in_words(json.loads(text))) if self._as_text else text)

    def refusal(self, sentence: str, line: int) -> None:
        sys.stderr.write(f"Line {line}: {sentence}\n")
        if not self._as_text:
            self._write(json.dumps({"error": sentence, "line": line}, ensure_ascii=False))

    def note(self, sentence: str) -> None:
        sys.stderr.write(f"{sentence}\n")

    def _write(self, text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def _in_words(answer: dict[str, Any]) -> Iterator[str]:
    """An answer for a terminal."""
    met = ""
    if answer["cost"] is not None:
        met = f"; the round before cost {answer['cost']:.4g}, violation {answer['violation']:.3g}"
    at = f", {answer['time']}" if "time" in answer else ""
    yield f"Round {answer['round']:,}{at}{met}"
    if "paths" in answer:
        shares = [(one["share"], f"{one['path']}{_of_whom(one)}") for one in answer["paths"]]
    else:
        shares = [(share, name) for name, share in answer["decision"].items() if share != 0.0]
        shares.sort(key=lambda one: -abs(one[0]))
    listed = [one for one in shares if abs(one[0]) >= _LEAST_SHOWN][:_MOST_SHOWN]
    for share, name in listed:
        yield f"  {share:9.4f}  {name}"
    if len(shares) > len(listed):
        yield f"             and {len(shares) - len(listed)} more"
    why = f"{answer['why'][0].upper()}{answer['why'][1:]}."
    yield from textwrap.wrap(
        why, WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
    )


def _of_whom(path: dict[str, Any]) -> str:
    return f" ({path['commodity']})" if "commodity" in path else ""


class _Stop:
    """Whether somebody asked to stop, and by which signal."""

    def __init__(self) -> None:
        self.requested: list[int] = []

    def note(self, number: int, frame: Any) -> None:
        """The first time the row is finished; the second time it ends at once."""
        if self.requested:
            raise KeyboardInterrupt
        self.requested.append(number)

    def wait(self, seconds: float) -> None:
        """So long, or until it is asked to stop."""
        end = time.monotonic() + seconds
        while not self.requested and (left := end - time.monotonic()) > 0.0:
            time.sleep(min(left, 0.1))


@contextmanager
def _stoppable() -> Iterator[_Stop]:
    stop = _Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, stop.note) for number in signals}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
