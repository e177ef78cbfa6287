"""The picture of docs/benchmarks/performance.md, from the times that `floor` has left in
out/bench/floor.json and two floors that are measured here.

    reading      both rows of a round, costs and capacities, once: their product, of all rounds
    correcting   the corrective steps of a round, on tables and targets of a real run: they move
                 weights among known vertices before the oracle is asked, as the method has it

No round that reads its data and corrects its weights can be faster than the two together; on flows
the solves of the tangent projection come on top.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from benchmarks import blocks
from benchmarks.bars import OUT
from benchmarks.commits import BASE, ROOT, drive

PAGE, IMAGES = ROOT / "docs/benchmarks/performance.md", ROOT / "docs/benchmarks/images"
HEAD = """| case | reading | corrective steps | a whole round, recorded | at 7f2d03d |
|---|---|---|---|---|"""
PROTOTYPE = {
    "simplex n = 10": 0.8,
    "simplex n = 100": 5.0,
    "simplex n = 1,000": 25.0,
    "simplex n = 10,000": 115.0,
    "flow, 140 arcs": 16.0,
    "freeway, 456 arcs": 21.0,
    "flow, 10,040 arcs": 727.0,
    "simplex n = 1,000,000": 1900.0,
    "box n = 1,000,000": 1900.0,
}
"""Microseconds a round of a throw-away kernel that records and checks nothing, another day."""
FLOORS = "from benchmarks.picture import drive_floors; drive_floors()"
STATES = 40
COLORS = {BASE: "#9aa5b1", "now": "#1f6f8b", "prototype": "#d9a441", "floor": "#b23a48"}


def drive_floors() -> None:
    """In a process on one thread: the two floors of a case, in microseconds, as JSON."""
    import sys

    import tidewolf as tw
    from benchmarks.cases import CASES

    K, stream = CASES[sys.argv[1]]()
    costs, limits = stream.losses.C.reshape(-1), stream.constraints.c.reshape(-1)
    found = {"reading": 1e6 * _least(lambda: costs @ limits) / len(stream)}
    states = []
    for played in tw.play(tw.LyapunovDescent(K), stream):
        states.append(played.state)
        if len(states) > 400:
            break
    pairs = list(pairwise(states))
    steps = [_correcting(*pair) for pair in pairs[:: max(1, len(pairs) // STATES)]]
    found["correcting"] = float(np.mean([one for one in steps if one is not None] or [0.0]))
    print(json.dumps(found))


def _correcting(state: Any, after: Any) -> float | None:
    """The corrective steps from one state towards the next one's target."""
    from tidewolf.core.vertices import SparseAtoms
    from tidewolf.kernels.active_set import pairwise_steps
    from tidewolf.projection.active_set import CORRECTIVE_GAP, CORRECTIVE_STEPS

    active = state.point.active
    if not isinstance(getattr(active, "atoms", None), SparseAtoms):
        return None
    count = len(active.weights)
    slopes = active.atoms.inner(active.x - after.point[1], count)
    stop = CORRECTIVE_GAP * max(after.point.distance**2, 1e-12)
    chosen, gram = np.empty(count, np.int64), active.atoms.gram

    def corrected(most: int) -> None:
        pairwise_steps(gram, active.weights.copy(), slopes.copy(), chosen, most, stop)

    whole, none = (_least(lambda most=most: corrected(most)) for most in (CORRECTIVE_STEPS, 0))
    return 1e6 * max(0.0, whole - none)


def _least(work: Any, repeats: int = 9) -> float:
    work()
    times = []
    for _ in range(repeats):
        start = process_time()
        work()
        times.append(process_time() - start)
    return min(times)


def report() -> None:
    """Measure the floors, draw, and say where the picture is."""
    kept = OUT / "floor.json"
    if not kept.exists():
        print("picture: python -m benchmarks floor comes first, as it leaves the times to draw.")
        return
    times = json.loads(kept.read_text())
    floors = {name: drive(FLOORS, None, name) for name in times}
    IMAGES.mkdir(parents=True, exist_ok=True)
    draw_rounds(times, floors, IMAGES / "rounds.svg")
    rows = [HEAD]
    for name, both in times.items():
        us = *floors[name].values(), both["now"]["run"], both[BASE]["run"]
        rows.append(" | ".join([f"| {name}", *map(_shown, us)]) + " |")
    PAGE.write_text(blocks.replaced(PAGE.read_text(), "rounds", "\n".join(rows)))
    print("\n".join(rows))
    print(f"drawn: {IMAGES / 'rounds.svg'}; the table is in {PAGE}")


def _shown(us: float) -> str:
    if us >= 1000.0:
        return f"{us / 1000.0:.3g} ms"
    return f"{us:.0f} us" if us >= 100.0 else f"{us:.2g} us"


def draw_rounds(times: dict[str, Any], floors: dict[str, Any], path: Path) -> None:
    """Microseconds a round of each case: then, now, the prototype's, and the floor."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "tidewolf"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8.0, 0.5 * len(times) + 1.4), layout="constrained")
    for row, (name, both) in enumerate(times.items()):
        then, now = both[BASE]["run"], both["now"]["run"]
        floor = sum(floors[name].values())
        axes.plot([floor, then], [row, row], color="#d5dbe1", linewidth=2, zorder=1)
        marks = {BASE: then, "now": now, "prototype": PROTOTYPE.get(name), "floor": floor}
        for label, us in marks.items():
            if us is not None:
                style = "|" if label == "floor" else "D" if label == "prototype" else "o"
                size = {"|": 260, "D": 30, "o": 70}[style]
                axes.scatter(us, row, s=size, marker=style, color=COLORS[label], zorder=2)
        axes.text(then * 1.25, row, f"{then / now:.2g}x", va="center", fontsize=9, color="#3d4852")
    for label, text in (
        (BASE, f"tw.run at {BASE}"),
        ("now", "tw.run now, checked and recorded"),
        ("prototype", "a bare prototype, another day"),
        ("floor", "floor: reading once + corrective steps"),
    ):
        axes.scatter(
            [], [], color=COLORS[label], label=text, marker="|" if label == "floor" else "o"
        )
    axes.set_xscale("log")
    axes.set_yticks(range(len(times)), list(times))
    axes.invert_yaxis()
    axes.set_xlabel("microseconds a round, one thread (logarithmic)")
    axes.grid(axis="x", color="#eef1f4")
    axes.set_axisbelow(True)
    axes.margins(x=0.12)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.legend(loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=2, frameon=False, fontsize=9)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
