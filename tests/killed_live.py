"""Run as a script: processes that answer rows are killed, one after another, at random moments.

    python killed_live.py NETWORK ROWS KILLS SEED

Each child runs `tidewolf live` on the pipe of its parent, who sends the rows again from a little
before the first that was not answered, and kills it while it works. What it answers must be, line
for line, what a session that was never stopped answers; the last one is left alone until all rows
are answered. Prints how many of those killed had answered a row.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

import tidewolf as tw
from tidewolf.cli import main as command
from tidewolf.live import Desk, live_learner, parse


def uninterrupted(network: Path, rows: list[bytes]) -> list[bytes]:
    """The coming decision, and the answer to each row."""
    experiment = tw.experiments.load(network)
    reader = tw.experiments.RoundReader(experiment)
    with Desk(reader, live_learner(experiment, reader.K), network.with_name("whole.db")) as desk:
        answers = [desk.coming_text(), *(desk.take_text(parse(row)) for row in rows)]
    return [answer.encode() for answer in answers]


def child(network: Path) -> tuple[int, int, int]:
    """A process that answers rows, where to write them, and where to read answers."""
    (read_rows, write_rows), (read_answers, write_answers) = os.pipe(), os.pipe()
    process = os.fork()
    if process == 0:
        os.close(write_rows)
        os.close(read_answers)
        os.dup2(read_rows, 0)
        os.dup2(write_answers, 1)
        os._exit(command(["live", str(network), "--db", str(network.with_name("killed.db"))]))
    os.close(read_rows)
    os.close(write_answers)
    return process, write_rows, read_answers


def answered(file: int, lines: int, found: bytes = b"") -> bytes:
    """What was answered up to so many lines, or to the end."""
    while found.count(b"\n") < lines and (data := os.read(file, 1 << 16)):
        found += data
    return found


def main(network: Path, rows: list[bytes], kills: int, seed: int) -> None:
    expected, rng, busy, done = uninterrupted(network, rows), random.Random(seed), 0, 0
    for kill in range(kills + 1):
        first = max(0, done - 2)
        process, write, read = child(network)
        os.write(write, b"".join(row + b"\n" for row in rows[first:]))
        if kill == kills:
            os.close(write)
            found = answered(read, len(rows) + 9)
        else:
            found = answered(read, rng.randrange(0, 6))
            time.sleep(0.02 * rng.random())
            os.kill(process, signal.SIGKILL)
            found = answered(read, len(rows) + 9, found)
            os.close(write)
        os.close(read)
        os.waitpid(process, 0)
        lines = found.split(b"\n")[:-1]
        assert not lines or lines[0] in expected[done:], f"other bits after {done} rows"
        wanted = expected[first + 1 : first + len(lines)]
        assert lines[1:] == wanted, f"other answers after {first} rows"
        busy += first + len(lines) - 1 > done
        done = max(done, first + len(lines) - 1)
    assert done == len(rows), f"{done} rows were answered"
    print(busy)  # noqa: T201


if __name__ == "__main__":
    lines = Path(sys.argv[2]).read_bytes().splitlines()
    main(Path(sys.argv[1]), lines, int(sys.argv[3]), int(sys.argv[4]))
