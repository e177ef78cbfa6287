"""Digests of twelve named runs, which show whether a change kept every bit.

    python -m tools.digests                   the digests of the tidewolf that Python finds
    python -m tools.digests --against REV     this tree beside a revision; exit 1 where any differs

A digest is the SHA-256 of losses, violations, oracle calls, distances and the point that would be
played next. The runs use public names only, so that older trees can play them, and need no data
files; together they go through every learner, four rivals, eleven sets and eight functions.
Bits are compared on one machine, under one interpreter; between machines they may differ.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import tidewolf as tw

ROOT = Path(__file__).resolve().parent.parent
MOVING = 400_000
"""With a shorter horizon the theorems' constants never let the point leave its start."""

Game: TypeAlias = tuple[Any, tw.Stream]
"""A learner and the stream it plays."""


def _on(name: str, rounds: int, build: Callable[..., Any], **settings: int) -> Game:
    problem = getattr(tw.problems, name)(rounds=rounds, seed=0)
    return build(problem.K, **settings), problem.stream


def _on_product(rounds: int) -> Game:
    rng = np.random.default_rng(0)
    parts = (
        tw.sets.Birkhoff(3),
        tw.sets.Permutahedron([3.0, 2.0, 1.0, 0.0]),
        tw.sets.CappedSimplex(5, 0.4),
        tw.sets.VertexHull(rng.normal(size=(7, 3))),
        tw.sets.LpBall(3, 3.0),
    )
    K = tw.sets.Product(*parts)
    n = K.shape[0]
    losses = tw.functions.Quadratic(np.eye(n), rng.normal(size=(rounds, n)))
    limits = tw.functions.MaxAffine(rng.normal(size=(rounds, 3, n)), np.full((rounds, 3), 0.5))
    return tw.LyapunovDescent(K), tw.Stream(losses, limits)


def _on_ball(rounds: int, n: int, build: Callable[..., Any], first: float, **sizes: float) -> Game:
    """The paper's constants on the unit ball, from a start near its boundary, slopes below 1."""
    rng = np.random.default_rng(0)
    losses = tw.functions.Linear(_short_rows(rng, rounds, n))
    limits = tw.functions.Affine(-_short_rows(rng, rounds, n), np.full(rounds, 0.1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the horizon is too short for a promise, as is known
        learner = build(
            tw.sets.L2Ball(n),
            horizon=MOVING,
            loss_lipschitz=1.0,
            constraint_lipschitz=1.0,
            start=[first] + [0.0] * (n - 1),
            **sizes,
        )
    return learner, tw.Stream(losses, limits)


def _short_rows(rng: np.random.Generator, rounds: int, n: int) -> np.ndarray[Any, Any]:
    """Rows of norm below 1, most of them near the first axis."""
    rows = np.eye(n)[0] + 0.3 * rng.normal(size=(rounds, n))
    inside: np.ndarray[Any, Any] = rows / (1.0 + np.linalg.norm(rows, axis=1, keepdims=True))
    return inside


def _bandit_theorem() -> Game:
    theorem = tw.BanditPrimalDual.theorem
    return _on_ball(100_000, 1, theorem, 0.95, loss_size=1.0, constraint_size=1.1)


RUNS: dict[str, Callable[[], Game]] = {
    "LyapunovDescent on routing": lambda: _on("routing", 300, tw.LyapunovDescent),
    "LyapunovDescent on a product": lambda: _on_product(200),
    "LyapunovFrankWolfe on sdp": lambda: _on("sdp", 100, tw.LyapunovFrankWolfe),
    "PrimalDual on scheduling": lambda: _on("scheduling", 200, tw.PrimalDual, horizon=200),
    "PrimalDual.theorem on a ball": lambda: _on_ball(100_000, 3, tw.PrimalDual.theorem, 1.0),
    "DriftPlusPenalty on routing": lambda: _on("routing", 60, tw.DriftPlusPenalty, horizon=60),
    "BanditPrimalDual on portfolio": lambda: _on("portfolio", 99, tw.BanditPrimalDual, horizon=99),
    "BanditPrimalDual.theorem on a ball": _bandit_theorem,
    "SinhaVaze on portfolio": lambda: _on("portfolio", 150, tw.baselines.SinhaVaze),
    "WangWanZhang on sdp": lambda: _on("sdp", 60, tw.baselines.WangWanZhang),
    "ProximalPenalty on adversarial": lambda: _on("adversarial", 150, tw.baselines.ProximalPenalty),
    "OnlineFrankWolfe on completion": lambda: _on("completion", 60, tw.baselines.OnlineFrankWolfe),
}


def digest(name: str) -> str:
    """The digest of one of the runs, by name."""
    learner, stream = RUNS[name]()
    run = tw.run(learner, stream)
    whole = hashlib.sha256()
    numbers = (run.losses, run.violations, run.calls, run.distances, learner.act(run.final_state))
    for array in numbers:
        whole.update(np.asarray(array, dtype=np.float64).tobytes())
    return whole.hexdigest()


def digests_of(tree: Path) -> dict[str, str]:
    """The digests of another tree, played by this script in a process of its own."""
    command = [sys.executable, "-m", "tools.digests", "--json"]
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True)
    digests: dict[str, str] = json.loads(done.stdout)
    return digests


@contextmanager
def checkout(revision: str) -> Iterator[Path]:
    """A temporary worktree of a revision."""
    git = ["git", "-C", str(ROOT), "worktree"]
    with tempfile.TemporaryDirectory(prefix="digests-") as folder:
        tree = Path(folder) / "tree"
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), revision], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.digests", description="Twelve runs.")
    parser.add_argument("--against", metavar="REV", help="compare this tree with a revision")
    parser.add_argument("--json", action="store_true", help="print the digests as JSON")
    asked = parser.parse_args()
    if asked.against is not None:
        return compare(asked.against)
    if asked.json:
        print(json.dumps({name: digest(name) for name in RUNS}))
        return 0
    for name in RUNS:
        print(f"{name:36} {digest(name)}", flush=True)
    return 0


def compare(revision: str) -> int:
    """Prints which runs are equal in this tree and in a revision; 1 where any differs."""
    with checkout(revision) as tree:
        before, now = digests_of(tree), digests_of(ROOT)
    for name in RUNS:
        print(f"{name:36} {'equal' if before[name] == now[name] else 'DIFFERS'}")
    differing = sum(before[name] != now[name] for name in RUNS)
    print(f"{len(RUNS) - differing} of {len(RUNS)} runs have the bits of {revision}.")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
