"""Every check by its name, in the order in which they are made."""

from __future__ import annotations

from tidewolf.doctor import compiled, libraries, machine, places, selftest, solving
from tidewolf.doctor.findings import Check

SELF_TEST: dict[str, Check] = {
    "self-test/a run": selftest.check_run,
    "self-test/projections": selftest.check_projection,
    "self-test/a killed session": selftest.check_session,
}


def every_check(quick: bool) -> dict[str, Check]:
    """Group/name and check; the self-test is left out where it must be quick."""
    found: dict[str, Check] = {
        "python/python": libraries.check_python,
        **{f"libraries/{name}": check for name, check in libraries.library_checks().items()},
        "machine/threads": machine.check_threads,
        "arrays/torch": machine.check_torch,
        "arrays/jax": machine.check_jax,
        "databases/PostgreSQL": machine.check_postgres,
        "places/folders": places.check_folders,
        "places/SQLite": places.check_sqlite,
        "kernels/numba": compiled.check_numba,
        "kernels/kernel": compiled.check_kernel,
        "solvers/HiGHS": solving.check_highs,
        "solvers/PIQP": solving.check_piqp,
        "solvers/Clarabel": solving.check_clarabel,
    }
    return found if quick else found | SELF_TEST
