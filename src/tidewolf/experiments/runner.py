"""The one runner behind sweeps and comparisons: planned cells, an engine, and what is kept.

    cells (plan.py)  ->  engine (engines.py)  ->  rows (play.py)  ->  journal (store.py)

The same call goes on where a killed one stopped: cells with a row are not played again, those that
failed are. A cell that fails is a row with the sentence that refused it, and no other suffers. Run
folders (folder.py) play the same cells one after another, and keep recordings in place of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from tidewolf.core.errors import OtherSettings
from tidewolf.experiments.engines import Engine, Task, versions
from tidewolf.experiments.plan import Cell, Row
from tidewolf.experiments.store import CHECKPOINTS_FOLDER, Kind, RowStore


class Stage(NamedTuple):
    """How far the cells have come."""

    done: int
    failed: int
    cells: int


def play_cells(cells: Sequence[Cell], engine: Engine) -> tuple[Row, ...]:
    """The rows of cells, of which nothing is kept."""
    tasks = {number: Task(cell) for number, cell in enumerate(cells)}
    with closing(engine(tasks)) as answers:
        rows = dict(answers)
    return tuple(rows[number] for number in tasks)


@contextmanager
def kept_cells(
    cells: Sequence[Cell],
    folder: Path,
    kind: Kind,
    *,
    engine: Engine,
    force: bool = False,
    progress: Callable[[Stage], None] | None = None,
) -> Iterator[tuple[tuple[Row, ...], bool]]:
    """The rows of cells in the order of the plan, and whether any was played now; those that the
    folder has are not played again. It is locked as long as the context lasts.
    """
    here, tell = versions(), progress or (lambda stage: None)
    plain = [cell.plain() for cell in cells]
    with RowStore(folder, kind, plain, here, force=force) as store:
        left = {
            number: Task(cell, store.recording(number))
            for number, cell in enumerate(cells)
            if number not in store.rows or store.rows[number]["failure"]
        }
        if left and store.versions != here:
            then = ", ".join(
                f"{name} {version}"
                for name, version in store.versions.items()
                if here.get(name) != version
            )
            raise OtherSettings(
                f"The {kind.name} in {folder} was begun with {then}: go on with that, name another "
                "folder, or overwrite with --force."
            )
        stage = Stage(len(cells) - len(left), 0, len(cells))
        tell(stage)
        if left:
            (folder / CHECKPOINTS_FOLDER).mkdir(exist_ok=True)
            with closing(engine(left)) as answers:
                for number, row in answers:
                    store.add(number, row)
                    stage = Stage(stage.done + 1, stage.failed + bool(row["failure"]), len(cells))
                    tell(stage)
        yield tuple(store.rows[number] for number in range(len(cells))), bool(left)
