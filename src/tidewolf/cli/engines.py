"""Who plays the cells of a command: --jobs and --dask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidewolf.core.errors import InvalidInput

if TYPE_CHECKING:
    from tidewolf.experiments.engines import CellProgress, Engine


def engine_for(jobs: int | None, dask: str | None, follow: CellProgress | None = None) -> Engine:
    """That of so many processes, as many as there are processors where nobody says; or that of a
    cluster. One process is this one, which tells how far each cell is.
    """
    from tidewolf.experiments import engines

    if dask is not None:
        return engines.on_cluster(dask)
    jobs = engines.processors() if jobs is None else jobs
    return engines.serial(follow) if follow and jobs == 1 else engines.on_processes(jobs)


def require_one(jobs: int | None, dask: str | None) -> None:
    """Refuse both at once."""
    if dask is not None and jobs is not None:
        raise InvalidInput(
            "Give --jobs for processes of this machine or --dask for a cluster, not both."
        )
