"""Tables, ranks, pictures and bars of the results that `python -m benchmarks run` has written.

The rank of a method on a task: first those whose mean violation is within the tolerance (1 % of the
mean violation of the best fixed point that ignores constraints), and whose worst window is at most
`WINDOW` of the budget if there is one, by mean loss; then the others, by the worst window, or by
mean violation without a budget. A method is ranked with its default settings. A row with a dagger
has the setting, of those that were tried, whose rank would be best: it is known only in hindsight
and has no rank. Bold: rank 1, and the least loss, violation, churn and time among default settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from benchmarks.measuring import ROOT, Bar
from benchmarks.pages import RANKED, Skipped, Table
from benchmarks.registry import TASKS, load
from benchmarks.suite import BEST, FOR_LIMITS, RESULTS, read

Rows = Sequence[dict[str, Any]]
COLUMNS = {
    "loss": "loss", "loss p99": "p99", "loss worst": "worst", "violation": "violation",
    "violation p99": "p99", "violation worst": "worst", "churn": "churn", "us": "us",
    "MB": "MB", "calls": "calls", "programs": "programs",
}  # fmt: skip
BOLD = [*COLUMNS][:8]
OTHER = ("curve", "regret %", "lower", "upper", "tolerance")
IMAGES, HINDSIGHT, OURS, WINDOW = ROOT / "docs" / "images", "\u2020", "Ensemble", 0.02
FAMILIES = {
    "#009E73": (OURS, "Ensemble with Leader", "Ensemble without experts"),
    "#56B4E9": ("LyapunovDescent",),
    "#0072B2": ("exact projection (Sinha-Vaze)", "CLASP"),
    "#D55E00": ("re-solving", "re-solving, most even", "re-solving, mean of the last 12",
                "re-solving, max of the last 12",
                "re-solving, mean + deviation of the last 12, most even"),
    "#CC79A7": ("Algorithm 3 (DriftPlusPenalty)", "Algorithm 4 (PrimalDual)",
                "Algorithm 5 (BanditPrimalDual)"),
    "#E69F00": ("Wang-Wan-Zhang", "online Frank-Wolfe"),
    "#666666": ("even", "static", "leader", "trained policy"),
    "#000000": ("EG", "online Newton step", "PAMR (mean reversion)"),
}  # fmt: skip
"""Methods by color; the first one's other settings are a line."""
STYLES = {
    name: (mark, color)
    for color, names in FAMILIES.items()
    for mark, name in zip("osD^v", names, strict=False)
}
OVER_ROUNDS = ("even", "re-solving", OURS, "Ensemble with Leader", BEST, "trained policy")
SIZES = {
    "LyapunovDescent": ("one call", "#009E73"),
    "LyapunovDescent, 4 calls": ("4 calls", "#56B4E9"),
    "LyapunovDescent, 16 calls": ("16 calls", "#0072B2"),
    "exact projection (Sinha-Vaze)": ("exact projection", "#CC79A7"),
    "exact projection, OSQP to 1e-4": ("by OSQP to 1e-4", "#E69F00"),
    "re-solving": ("re-solving", "#D55E00"),
}
"""Columns, and colors of lines."""
EXACT, UNITS = [*SIZES][3:5], {"flow": "arcs", "trees": "edges"}
TITLES = {"psd": "positive semidefinite matrices", "birkhoff": "Birkhoff polytope",
          "trees": "spanning trees", "nuclear": "nuclear norm ball"}  # fmt: skip
LEADER, FRONTIERS = 12.40, {"exact projection (Sinha-Vaze)": -1.0, "re-solving": 0.3}
"""By how many percent Ensemble's loss may be above the least possible on `meta`, with the leader as
an expert, and above what these reach at its violation.
"""


class Entry(NamedTuple):
    """A line of a table: a method with its default settings, or with its best in hindsight."""

    name: str
    row: dict[str, Any]
    rank: int | None


def mean(row: dict[str, Any], number: str) -> float:
    """Of the seeds; of times the median, since the first may compile."""
    values = row["numbers"].get(number, [np.nan])
    return float(np.median(values) if number == "us" else np.mean(values))


def by_task(rows: Rows) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["task"], []).append(row)
    return found


def entries(rows: Rows) -> list[Entry]:
    """The lines of one task: the comparator, defaults by rank, then best settings in hindsight."""
    best = next(row for row in rows if row["method"] == BEST)
    played = [row for row in rows if "numbers" in row and row is not best]
    tolerance = mean(best, "tolerance") + 1e-12

    def score(row: dict[str, Any]) -> tuple[bool, float]:
        violation, window = mean(row, "violation"), mean(row, "worst window")
        misses = violation > tolerance or window > WINDOW  # no number if there is no budget
        return misses, (window if window == window else violation) if misses else mean(row, "loss")

    ranked = sorted((row for row in played if not row["setting"]), key=score)
    found = [Entry(BEST, best, None)]
    found += [Entry(row["method"], row, rank) for rank, row in enumerate(ranked, 1)]
    for row in ranked:
        own = min((r for r in played if r["method"] == row["method"]), key=score)
        if own["setting"]:
            words = ", ".join(f"{name} {value}" for name, value in own["setting"].items())
            found.append(Entry(f"{row['method']}, {words} {HINDSIGHT}", own, None))
    return found


def cell(row: dict[str, Any], number: str) -> str:
    """The mean of the seeds; of loss and violation with half of its 95 % confidence interval."""
    values = row["numbers"].get(number)
    if values is None:
        return ""
    text, spread = f"{mean(row, number):.4g}", number in ("loss", "violation")
    if spread and len(values) > 1 and (error := stats.sem(values)) > 0.0:
        text += f" \u00b1 {error * stats.t.ppf(0.975, len(values) - 1):.1g}"
    return text


def table(name: str = "bars", folder: Path = RESULTS) -> Table:
    """That of a suite, of ranks over all tasks, or of our own bars."""
    rows = read(folder, *(RANKED if name == "ranks" else [name]))
    if rows and name == "bars":
        return asked(rows)
    if not rows:
        raise Skipped(f"there are no results in {folder}; `python -m benchmarks run` makes them")
    if name in ("ranks", "size"):
        return ranks(rows) if name == "ranks" else sizes(rows)
    more = dict.fromkeys(n for row in rows for n in row.get("numbers", {}) if n not in OTHER)
    columns, lines = COLUMNS | {n: n for n in more if n not in COLUMNS}, []
    for task, own in by_task(rows).items():
        found = entries(own)
        least = {c: min(mean(e.row, c) for e in found if e.rank) for c in BOLD}
        for each in found:
            cells = [task if each.row is found[0].row else ""]
            cells.append(f"**{each.name}**" if each.rank == 1 else each.name)
            for c in columns:
                text = cell(each.row, c)
                bold = each.rank and c in BOLD and mean(each.row, c) == least[c]
                cells.append(f"**{text}**" if bold else text)
            lines.append((*cells, str(each.rank or "")))
    return Table(("task", "method", *columns.values(), "rank"), lines, origin(rows))


def asked(rows: Rows) -> Table:
    """Our own targets: what was measured, in which commit, by which command."""
    lines = []
    for row in rows:
        bar = Bar(**{field.name: row[field.name] for field in fields(Bar)})
        *cells, verdict = bar.words
        verdict = verdict if bar.holds else f"**{verdict}**"
        command = f"`python -m benchmarks {row['command']}`".replace(" `", "`")
        lines.append((bar.name, *cells, verdict, row["commit"], command))
    return Table(("target", "measured", "asked", "", "commit", "command"), lines)


def all_ranks(rows: Rows) -> tuple[list[str], dict[str, dict[str, int]]]:
    """The tasks, and the ranks of each method by task, the best method first."""
    found: dict[str, dict[str, int]] = {}
    for task, own in by_task(rows).items():
        for each in entries(own):
            if each.rank:
                found.setdefault(each.name, {})[task] = each.rank
    most = max(map(len, found.values()))  # methods for a few tasks come last
    order = sorted(found, key=lambda n: (2 * len(found[n]) < most, np.mean([*found[n].values()])))
    return [*by_task(rows)], {name: found[name] for name in order}


def ranks(rows: Rows) -> Table:
    """Ranks over tasks, lower is better."""
    _, found = all_ranks(rows)
    lines = []
    for name, own in found.items():
        each = np.array([*own.values()])
        counts = len(each), (each == 1).sum(), (each <= 3).sum(), each.max()
        lines.append((name, f"{each.mean():.1f}", *map(str, counts)))
    return Table(("method", "mean rank", "tasks", "first", "among three", "worst rank"), lines)


def sizes(rows: Rows) -> Table:
    """Milliseconds per decision, and the share of exact projection's gain on the center."""
    lines = []
    for own in by_task(rows).values():
        found, family = {r["method"]: r for r in own if "numbers" in r}, own[0]["task"].split()[0]
        slow = {r["method"]: r["skipped"] for r in own if r.get("skipped", "").startswith("more")}
        even, exact = mean(found["even"], "loss"), [r for n, r in found.items() if n in EXACT]
        gain = even - min((mean(r, "loss") for r in exact), default=np.nan)
        cells = [f"{family}, {own[0]['size']:,} {UNITS.get(family, 'rows')}"]
        for name in SIZES:
            row, text = found.get(name), slow.get(name, "").removesuffix(" per round")
            if row:
                text, share = f"{mean(row, 'us') / 1e3:.3g} ms", (even - mean(row, "loss")) / gain
                text += f" ({100 * share:.0f} %)" if share == share else ""
            cells.append(text)
        times = [mean(r, "us") / mean(found["LyapunovDescent"], "us") for r in exact]
        lines.append((*cells, f"{min(times):.2g}" if times else ""))
    return Table(("set", *(label for label, _ in SIZES.values()), "factor"), lines, origin(rows))


def origin(rows: Rows) -> str:
    """How the rows were made, in a sentence."""
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        seeds = f", seeds 0 to {row['seeds'][-1]}" if len(row["seeds"]) > 1 else ""
        by = f"in commit {row['commit']} by `python -m benchmarks {row['command']}`"
        often, name = f"{row['rounds']:,} rounds{seeds}", row["task"]
        if row["suite"] == "size":  # the smallest of a family has most rounds
            often, name = f"up to {often}", name.split()[0]
        found.setdefault(by, {}).setdefault(name, f"{name} ({often})")
    each = (f"{', '.join(own.values())} {by}" for by, own in found.items())
    return f"Recorded: {'; '.join(each)}."


def bars(rows: Rows) -> Iterator[Bar]:
    """Ensemble's loss above the frontiers of two baselines at equal violation, median of seeds: at
    Ensemble's violation by default, or, where a baseline never violates as little, at the
    baseline's least, with the caution of Ensemble that has it. If none has, nothing is compared.
    """
    for task, own in by_task(rows).items():
        played = [row for row in own if "numbers" in row]
        for row in (
            row for row in played if (task, row["method"]) == ("meta", "Ensemble with Leader")
        ):
            above, name = 100.0 * (mean(row, "loss") - 1.0), "meta, Ensemble with Leader"
            yield Bar(f"{name}: above the least possible", above, LEADER, "%")
            yield Bar(f"{name}: processor time per round", mean(row, "us"), 1000.0, "us")
        ours = sorted((r for r in played if r["method"] == OURS), key=lambda r: len(r["setting"]))
        for baseline, most in FRONTIERS.items():
            theirs = [row for row in played if row["method"] == baseline]
            if not ours or len(theirs) < 2 or not mean(ours[0], "violation") > 0.0:
                continue
            if "worst window" in ours[0]["numbers"]:  # what counts there is the budget
                continue
            found = [_above(ours, theirs, seed) for seed in range(len(ours[0]["seeds"]))]
            gaps, lowered = [g for g, _ in found if g == g], sum(less for _, less in found)
            if not gaps:
                print(f"  {task}: {baseline} violates more with every setting than {OURS} with any")
                continue
            name = f"{task}: loss above {baseline} at the same violation"
            note = f"{len(gaps)} seeds, {lowered} at the least violation of {baseline}"
            yield Bar(name, float(np.median(gaps)), most, "%", note=note)


def _above(ours: Rows, theirs: Rows, seed: int) -> tuple[float, bool]:
    """In percent, between neighbours of the points that no other beats, and whether the caution of
    the first of ours, the default, is changed; NaN, if all of ours violate less than theirs.
    """

    def points(rows: Rows) -> tuple[Any, Any]:
        each = sorted((r["numbers"]["violation"][seed], r["numbers"]["loss"][seed]) for r in rows)
        violations, losses = np.array(each).T
        return violations, np.minimum.accumulate(losses)

    least, violation = points(theirs)[0][0], points(ours[:1])[0][0]
    loss = points(ours[:1])[1][0]
    if violation < least:
        loss = np.interp(least, *points(ours), right=np.nan)
    there = np.interp(max(violation, least), *points(theirs))
    return 100.0 * float(loss - there) / abs(there), bool(violation < least)


# --- pictures -------------------------------------------------------------------------------------


def draw(suite: str, folder: Path = RESULTS, images: Path = IMAGES) -> list[Path]:
    """The pictures of a suite's results, or of ranks."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    load()
    rows = read(folder, *(RANKED if suite == "ranks" else [suite]))
    tasks, panels = by_task(rows), [partial(_ranks, rows=rows)]
    if suite == "size":
        families = dict.fromkeys(name.split()[0] for name in tasks)
        panels = [partial(_sizes, rows=rows, family=family) for family in families]
    elif suite != "ranks":
        panels = [partial(_panel, rows=own, task=task) for task, own in tasks.items()]
    pictures = {f"suite-{suite}": panels}
    if suite == "network" and "geant" in tasks:
        pictures["headline"] = [partial(_panel, rows=tasks["geant"], task="geant")]
    if suite == "traffic" and "meta" in tasks:
        pictures["meta"] = [partial(_over_rounds, rows=tasks["meta"])]
    with rc_context({"svg.hashsalt": "tidewolf", "svg.fonttype": "path", "font.size": 9}):
        for name, panels in pictures.items():
            columns, lines = min(2, len(panels)), -(-len(panels) // 2)
            size = (8.4, 3.4 * lines + 1.0) if len(panels) > 1 else (8.4, 5.2)
            figure = Figure(figsize=size, layout="constrained")
            axes, labels = figure.subplots(lines, columns, squeeze=False).ravel(), dict[str, Any]()
            for ax in axes[len(panels) :]:
                ax.set_axis_off()
            for ax, panel in zip(axes, panels, strict=False):
                panel(ax)
                marks, names = ax.get_legend_handles_labels()
                labels |= dict(zip(names, marks, strict=True))
            given: Any = {"loc": "outside lower center", "ncols": 3, "frameon": False}
            first = [label for label, _ in SIZES.values()] if suite == "size" else [*STYLES]
            order = sorted(labels, key=[*first, *labels].index)
            figure.legend([labels[name] for name in order], order, fontsize=8, **given)
            figure.savefig(images / f"{name}.svg", metadata={"Date": None})
    return [images / f"{name}.svg" for name in pictures]


def _panel(ax: Any, rows: Rows, task: str) -> None:
    """Mean loss against mean violation, or overspend: marks for defaults, and for the first method
    of a family dots for other settings, joined in the order of the first. A mark on the upper or
    lower edge lies beyond it, one at the left edge of the tolerance to the left of it.
    """
    best, *found = entries(rows)
    number, words = "violation", "mean violation per round"
    ranked, least = [e for e in found if e.rank], mean(best.row, "tolerance")
    if "worst window" in best.row["numbers"]:
        number, words, least = "worst window", "worst overspend, share of the budget", WINDOW
    limited = least > 0.0

    def place(row: dict[str, Any]) -> tuple[float, float]:
        across = max(mean(row, number), 0.03 * least) if limited else mean(row, "loss p99")
        return across, mean(row, "loss")

    losses = [mean(best.row, "loss"), *(mean(e.row, "loss") for e in ranked)]
    ours = [mean(e.row, "loss") for e in ranked if e.name == OURS]
    low, high = min(losses), max(float(np.quantile(losses, 0.7)), *ours)
    if high - np.quantile(losses, 0.1) < (high - low) / 3:  # one is far better than all others
        low = float(np.quantile(losses, 0.1))
    low, high = low - 0.1 * (high - low), high + 0.1 * (high - low)
    ax.axhline(losses[0], color="#333333", lw=0.8, ls=":", label=BEST)
    for each in reversed(ranked):
        mark, color = STYLES.get(each.name, ("*", "#000000"))
        x, y = place(each.row)
        own = [r for r in rows if r["method"] == each.name and r["setting"] and "numbers" in r]
        if mark == "o" and own:
            (name,) = own[0]["setting"]
            line = {r["setting"][name]: place(r) for r in own if name in r["setting"]}
            line[FOR_LIMITS.get(name, 0.0)] = x, y
            ax.plot(*zip(*(line[at] for at in sorted(line)), strict=True), "-", color=color, lw=1)
            ax.plot(*zip(*map(place, own), strict=True), ".", color=color, ms=4)
        given: Any = {"ms": 6, "zorder": 3, "mec": "white", "clip_on": False}
        given |= {"ms": 10, "zorder": 2.5} if each.name == OURS else {}
        ax.plot(x, np.clip(y, low, high), mark, color=color, label=each.name, **given)
    ax.set_ylim(low, high)
    if limited:
        ax.set_xscale("log")
        given = {"color": "#009E73", "alpha": 0.07, "lw": 0, "label": "within the tolerance"}
        ax.axvspan(0.025 * least, least, **given)
    ax.set_title(task, pad=8)
    ax.set_ylabel(f"mean loss per round\n({TASKS[task].unit})".removesuffix("\n(loss)"))
    ax.set_xlabel(words if limited else "99th percentile of the loss")
    ax.grid(color="#EEEEEE")


def _over_rounds(ax: Any, rows: Rows) -> None:
    """Means over a twentieth of the rounds."""
    for number, name in enumerate(OVER_ROUNDS):
        for row in rows:
            if row["method"] == name and not row["setting"] and "numbers" in row:
                curve = np.convolve(row["numbers"]["curve"], np.full(5, 0.2), "valid")
                ends = row["rounds"] * np.arange(5, 5 + len(curve)) / len(row["numbers"]["curve"])
                late = row["first"] + row["rounds"] / 20 if name == "trained policy" else 0.0
                ax.plot(ends[ends > late], curve[ends > late], f"C{number}", label=name)
    ax.set(xlabel="round", title="Meta PoD a, 12 pairs, means over a twentieth of the rounds")
    ax.set_ylabel("utilisation of the fullest link\nover the least possible (lower is better)")
    ax.grid(color="#EEEEEE")


def _ranks(ax: Any, rows: Rows) -> None:
    """The rank of every method on every task; dark is better."""
    tasks, found = all_ranks(rows)
    grid = np.array([[own.get(task, np.nan) for task in tasks] for own in found.values()])
    ax.imshow(grid, cmap="YlGn_r", aspect="auto")
    for (i, j), rank in np.ndenumerate(grid):
        if rank == rank:
            color = "white" if rank <= 7 else "black"
            ax.text(j, i, f"{rank:.0f}", ha="center", va="center", color=color, fontsize=8)
    ax.set_xticks(range(len(tasks)), tasks, rotation=40, ha="right")
    ax.set_yticks(range(len(found)), [name.replace(" of the last 12", "") for name in found])
    ax.set_title("Rank on every task, default settings: 1 is best; empty: not played", fontsize=11)


def _sizes(ax: Any, rows: Rows, family: str) -> None:
    """Time per decision over the size of a family; lower is better."""
    played = [r for r in rows if r["task"].split()[0] == family and "numbers" in r]
    for name, (label, color) in SIZES.items():
        own = [row for row in played if row["method"] == name]
        times = [mean(row, "us") / 1e3 for row in own]
        ax.loglog([row["size"] for row in own], times, ".-", color=color, label=label)
    every = sorted({row["size"] for row in played})
    ax.set_xticks(every, map("{:,}".format, every))
    ax.set_xticks([], minor=True)
    ax.set(
        title=TITLES.get(family, family), xlabel=UNITS.get(family, "rows"), ylabel="ms per decision"
    )
    ax.grid(color="#EEEEEE")
