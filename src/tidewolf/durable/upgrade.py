"""Files of tidewolf 0.1 become files of today: what was observed is observed again.

Their states are those of other learners, but what was observed is all there, unless it was thrown
away. So the present learner observes it from its start, round by round, and the new tables take the
place of the old ones in one transaction: whatever happens before its end, the file is as it was.
The decisions from here on may differ from those that tidewolf 0.1 would have made; a warning says
so.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tidewolf.core import checkpoint
from tidewolf.core.errors import (
    BrokenFile,
    CheckpointError,
    OlderFormat,
    OtherSettings,
    OtherVersions,
)
from tidewolf.core.values import identity
from tidewolf.durable import file_schema
from tidewolf.durable.database import Database
from tidewolf.durable.feedback import decode, decode_format_1, encode
from tidewolf.durable.records import Row, digest
from tidewolf.durable.tables import Tables
from tidewolf.methods.base import Learner

_AT_ONCE = 256


class _Head(NamedTuple):
    """As in `tables`, before there were epochs."""

    first: int
    base: bytes
    last: int
    link: bytes
    snapshot: int


def upgrade(db: Database, path: Path, learner: Learner[Any]) -> None:
    """Replace the tables of tidewolf 0.1 by those of today, within a transaction that is open."""
    _require_whole(db, path, learner)
    db.execute("ALTER TABLE observations RENAME TO observations_1")
    for name in ("head", "snapshot"):
        db.execute(f"DROP TABLE {name}")
    state = learner.start()
    file_schema.make(db, identity(learner), learner.save(state), checkpoint.writer()["tidewolf"])
    tables = Tables(db)
    head = tables.read_head()
    for data in _observations(db):
        seen, state = _observed(data, state, path, learner)
        row = Row(head.last + 1, state.t - seen.rounds + 1, seen.rounds, 1, encode(seen))
        tables.add(row)
        head = head._replace(last=row.arrived, link=row.link(head.link))
    head = head._replace(snapshot=head.last, epoch=1)
    tables.add_snapshot(head, learner.save(state), 1)
    tables.write_head(head)
    db.execute("DROP TABLE observations_1")
    db.execute("INSERT INTO meta VALUES ('upgraded from format', 1)")
    warnings.warn(
        f"{path} was written by tidewolf 0.1: its {head.last} observations were observed again by "
        f"this {type(learner).__name__}, and decisions may differ from here on.",
        OtherVersions,
        stacklevel=6,
    )


def _require_whole(db: Database, path: Path, learner: Learner[Any]) -> None:
    """Refuse what was changed, what has no history from its first round, and what another kind of
    learner was told.
    """
    whole = db.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
    try:
        head = _Head(*db.execute("SELECT first, base, last, link, snapshot FROM head").fetchone())
        state, seal = db.execute("SELECT state, seal FROM snapshot").fetchone()
        count, found, sealed = head.first, head.base, head.base
        for number, data in db.execute("SELECT number, data FROM observations ORDER BY number"):
            count, found = count + 1, digest(found, data)
            whole = whole and number == count
            sealed = found if count == head.snapshot else sealed
        whole = whole and (count, found) == (head.last, head.link)
        whole = whole and digest(sealed, state) == seal
        whole = whole and 0 <= head.first <= head.snapshot <= head.last
    except (TypeError, ValueError):  # a row is not there, or is of another type
        whole = False
    if not whole:
        raise BrokenFile(
            f"{path} is truncated or was changed: its checksums do not match. Go back to an "
            "earlier copy."
        )
    if head.first > 0:
        raise OlderFormat(
            f"{path} was written by tidewolf 0.1 without the history of its first rounds, from "
            "which this one would have to begin: go on with tidewolf 0.1, or start anew."
        )
    was, here = checkpoint.learner_of(state, str(path)), type(learner).__name__
    if was.removeprefix("Theorem") != here.removeprefix("Theorem"):
        raise OtherSettings(
            f"{path} was written by a {was}, not by a {here}. Make the learner as it was then, or "
            "start anew."
        )


def _observations(db: Database) -> Iterator[bytes]:
    number = 0
    query = "SELECT number, data FROM observations_1 WHERE number > ? ORDER BY number LIMIT ?"
    while rows := db.execute(query, (number, _AT_ONCE)).fetchall():
        yield from (data for _, data in rows)
        number = rows[-1][0]


def _observed(data: bytes, state: Any, path: Path, learner: Learner[Any]) -> tuple[Any, Any]:
    """What was observed, and the state after it."""
    center = learner.hard_set.center
    try:
        seen = decode_format_1(data, center)
        return seen, learner.update(state, decode(encode(seen), center))
    except CheckpointError as error:
        raise type(error)(f"{path}: {error}") from None
    except Exception as error:  # hand-made content breaks in every way
        raise BrokenFile(
            f"{path} has right checksums and holds what no {type(learner).__name__} observes: "
            f"{checkpoint.half_sentence(error)}."
        ) from None
