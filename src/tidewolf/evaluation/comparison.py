"""Results of a comparison: its runs, their frontiers, and learners measured against a baseline.

A point is the mean over seeds of the runs of one learner at one caution, or headroom, and one
budget of oracle calls. Shares are of the comparator's mean loss in absolute value: 0.005 is 0.5 %.
A stream without a comparator has frontiers of the loss in place of the regret, and shares of the
least mean loss of any point.

A frontier is the mean regret against the mean violation per round, as a knob moves; lower is better
in both. If a stream has no comparator, the mean loss stands in for the regret: between two points
the comparator cancels. With P ours, Q the baseline's, and s = |the comparator's mean loss|:

    gap(p, Q)        =  ( p.regret - min{ q.regret : q.violation <= 1.1 p.violation } ) / s
    shortfall(P, Q)  =  max_{q in Q} ( min{ p.regret : p.violation <= 1.1 q.violation } - q.regret )
                        / s
    saving(P, Q)     =  median over levels r of  V_Q(r)/V_P(r),
    V(r) = least violation at a regret of at most r

p is on the frontier of Q where its gap is at most 0.5 %; where p is more careful than all of Q, the
most careful point of Q counts. P matches every point of Q where its shortfall is at most 0.5 %; it
is infinite where P has no point that careful.
The levels of `saving` are the regrets of the points of P and of Q that both sides reach; the median
of an even number of ratios is the geometric mean of the middle two, so
saving(Q, P) = 1/saving(P, Q).
"""

import csv
import io
import json
import math
import os
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from typing import Any, NamedTuple, Self, final

from tidewolf.core import arrays, checkpoint, feedback, values
from tidewolf.core.arguments import as_flag, as_path, csv_cell, listed, shown
from tidewolf.core.errors import BrokenFile, InvalidInput, refuse, require_format
from tidewolf.evaluation import formatting
from tidewolf.evaluation.formatting import (
    Column,
    percent,
    plain,
    plain_interval,
    report_module,
)

COMPARISON_FORMAT = 4
# What the others are measured by, where it takes part: exact projections.
BASELINE = "SinhaVaze"
FILES = ("comparison.json", "comparison.csv")

# What counts as on the frontier: this share of the comparator's mean loss.
ALLOWED = 0.005
# A baseline's point may break limits by this much more than ours and still be held against it.
VIOLATION_SLACK = 1.1


class Point(NamedTuple):
    """What one setting of a learner came to, a round; the mean over seeds.

    Attributes
    ----------
    caution : float or None
        The knob; None if the learner has none.
    budget : float or None
        Oracle calls allowed per round; None if the learner has no such setting.
    regret : float or None
        Its upper end; between two points of one stream the difference is exact, for the
        comparator cancels. None if the stream has no comparator.
    infeasibility : float
        Largest infeasibility of a played point over the set, in any round of any seed.
    solves : float or None
        Linear programs solved; this and what follows is None if it was not measured.
    violation_p99 : float or None
        What 99 % of the rounds do not exceed.
    violation_worst : float or None
        Of any round of any seed.
    broken : float or None
        Share of rounds in which the limit was broken.
    churn : float or None
        How far the decision moved, half the L1 change.
    knob : str
        What is turned: caution, headroom, target_violation; empty if there is nothing to turn.
    """

    caution: float | None
    budget: float | None
    regret: float | None
    violation: float
    calls: float
    seconds: float
    infeasibility: float
    loss: float = 0.0
    solves: float | None = None
    violation_p99: float | None = None
    violation_worst: float | None = None
    broken: float | None = None
    churn: float | None = None
    churn_p99: float | None = None
    churn_worst: float | None = None
    knob: str = ""
    value: float | None = None
    default: bool = False

    @property
    def level(self) -> float:
        """What is drawn against the violation: the regret, or else the loss."""
        return self.loss if self.regret is None else self.regret

    @property
    def at(self) -> str:
        return f"{self.knob.partition('_')[0]} {self.value:g}" if self.knob else ""


class Entry(NamedTuple):
    """One run, a round; numbers are None if it was refused, with the sentence in `failure`.

    Attributes
    ----------
    caution : float or None
        None if the learner has no such setting.
    budget : float or None
        Oracle calls allowed per round; None if the learner has no such setting.
    regret : tuple[float, float] or None
        A certified interval; None if no point is feasible or no comparator is known.
    infeasibility : float or None
        Largest infeasibility of a played point over the set.
    certificate : bool or None
        Whether everything the run can prove about itself holds; None if that is undecided.
    sees : str
        What the learner sees of a round, in words; unknown if it was refused at once.
    solves : float or None
        Linear programs.
    loss_p99 : float or None
        What 99 % of the rounds do not exceed.
    broken : float or None
        Share of rounds in which the limit was broken.
    churn : float or None
        How far the decision moved, half the L1 change.
    headroom, target_violation : float or None
        None if the learner has no such setting.
    default : bool
        Whether caution, or headroom, is the learner's default.
    """

    stream: str
    learner: str
    seed: int
    caution: float | None
    budget: float | None
    loss: float | None = None
    regret: tuple[float, float] | None = None
    violation: float | None = None
    calls: float | None = None
    seconds: float | None = None
    infeasibility: float | None = None
    certificate: bool | None = None
    failure: str = ""
    sees: str = ""
    solves: float | None = None
    loss_p99: float | None = None
    loss_worst: float | None = None
    violation_p99: float | None = None
    violation_worst: float | None = None
    broken: float | None = None
    churn: float | None = None
    churn_p99: float | None = None
    churn_worst: float | None = None
    headroom: float | None = None
    target_violation: float | None = None
    default: bool = False


class Venue(NamedTuple):
    """A stream under one seed, and what is known of its best fixed point, a round.

    Attributes
    ----------
    reason : str
        Why there is no comparator, if there is none.
    """

    stream: str
    seed: int
    rounds: int
    lower: float
    upper: float
    feasible: bool | None
    reason: str = ""

    @property
    def mean(self) -> float | None:
        return next((end for end in (self.upper, self.lower) if math.isfinite(end)), None)


class Ranking(NamedTuple):
    """A learner on a stream at one budget: its frontier, compared with the baseline's.

    Shares are of the comparator's mean loss. A number is None if one of the two has no points.

    Attributes
    ----------
    gaps : tuple[float, ...] or None
        For each point, how far its regret is above the baseline's best at up to 1.1 times its
        violation; if a point is more careful than all of the baseline's, the most careful one
        of those counts.
    shortfall : float or None
        How far the baseline's point that is matched worst is out of reach: infinite if the
        learner is never as careful.
    saving : float or None
        How many times less violation than the baseline at equal regret: the median over the
        levels of regret that both reach.
    saving_in_time : float or None
        The same against those points of the baseline that took no longer than the learner's
        slowest; None if it has none.
    """

    stream: str
    learner: str
    budget: float | None
    points: tuple[Point, ...]
    gaps: tuple[float, ...] | None
    shortfall: float | None
    saving: float | None
    saving_in_time: float | None

    @property
    def gap(self) -> float | None:
        """The largest gap: up to 0.005 the learner is on the baseline's frontier."""
        return max(self.gaps, default=None) if self.gaps else None


@final
@dataclass(frozen=True, eq=False, repr=False)
class Comparison(values.Value):
    """The results of `tw.compare`: runs, frontiers and rankings.

    Prints as a table of rankings. Shares are relative to the comparator's mean loss: 0.005 is 0.5
    %.

    Parameters
    ----------
    venues : tuple of Venue
        Each stream under each seed, and what is known of its best fixed point.
    entries : tuple of Entry
        The runs, each number per round.

    Examples
    --------
    >>> K = tw.sets.Simplex(2)
    >>> losses = tw.functions.Linear([[1.0, 2.0]] * 4)
    >>> stream = tw.Stream(losses, tw.functions.Capacity([[0.75, 1.0]] * 4))
    >>> found = tw.compare(
    ...     [tw.LyapunovDescent, tw.baselines.SinhaVaze],
    ...     {"capacities": (K, stream)},
    ...     cautions=[1, 10],
    ... )
    >>> [point.caution for point in found.frontier("capacities", "LyapunovDescent")]
    [1.0, 10.0]
    """

    venues: tuple[Venue, ...]
    entries: tuple[Entry, ...]

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of the streams."""
        return tuple(dict.fromkeys(venue.stream for venue in self.venues))

    @property
    def learners(self) -> tuple[str, ...]:
        """The names of the learners."""
        return tuple(dict.fromkeys(entry.learner for entry in self.entries))

    @property
    def baseline(self) -> str:
        """SinhaVaze if it takes part, else the first learner."""
        return BASELINE if BASELINE in self.learners else self.learners[0]

    @property
    def failures(self) -> tuple[Entry, ...]:
        """The runs that were refused."""
        return tuple(entry for entry in self.entries if entry.failure)

    def frontier(
        self,
        stream: str,
        learner: str,
        budget: float | None = None,
        *,
        seconds: float | None = None,
    ) -> tuple[Point, ...]:
        """The points of a learner as caution, or headroom, moves, at equal calls and equal time.

        Parameters
        ----------
        stream, learner : str
            Their names.
        budget : float, default None
            Oracle calls allowed per round; a learner without such a setting counts for all. None:
            the points of every budget.
        seconds : float, default None
            Only points that took at most so many seconds per round.

        Returns
        -------
        tuple of Point
            Means over seeds: a point counts where every seed was run.
        """
        self._require_known(stream, learner)
        budget = None if budget is None else arrays.as_number(budget, "The budget", above=0.0)
        seconds = None if seconds is None else arrays.as_number(seconds, "The seconds per round")
        groups: dict[Any, list[Entry]] = {}
        for e in self.entries:
            if (e.stream, e.learner) == (stream, learner) and budget in (None, e.budget or budget):
                groups.setdefault((e.budget, *(getattr(e, name) for name in KNOBS)), []).append(e)
        by_regret = self.measure(stream) == "regret"
        points = (_point(group, by_regret) for group in groups.values())
        kept = [p for p in points if p is not None and (seconds is None or p.seconds <= seconds)]
        return tuple(sorted(kept, key=lambda point: (point.budget or 0.0, point.value or 0.0)))

    def measure(self, stream: str) -> str:
        """What frontiers have beside the violation: "regret", or "loss" where a run has no
        regret because no point satisfies every constraint or no comparator is known.
        """
        self._require_known(stream)
        played = [e for e in self.entries if e.stream == stream and e.loss is not None]
        known = all(e.regret is not None and math.isfinite(e.regret[1]) for e in played)
        return "regret" if known else "loss"

    def scale(self, stream: str) -> float | None:
        """|the comparator's mean loss|, in the mean over seeds; if it is not known, |the least
        mean loss| of any point; None if there is none.
        """
        self._require_known(stream)
        means = [venue.mean for venue in self.venues if venue.stream == stream]
        known = [mean for mean in means if mean is not None]
        if known and len(known) == len(means):
            return abs(statistics.fmean(known))
        points = (p for learner in self.learners for p in self.frontier(stream, learner))
        losses = [point.loss for point in points if point.loss is not None]
        return abs(min(losses)) if losses else None

    def share_of(self) -> str:
        """What shares are of, in words."""
        known = any(self.measure(stream) == "regret" for stream in self.streams)
        return "the best fixed point's mean loss" if known else "the least mean loss of any point"

    def chooser(self, stream: str) -> str | None:
        """The learner whose caution is to be chosen: the first for which it was swept; None if
        there is none.
        """
        for learner in self.learners:
            if len({p.value for p in self.frontier(stream, learner) if p.knob == "caution"}) > 1:
                return learner
        return None

    def steps(self, stream: str, learner: str | None = None) -> list[str]:
        """What each step of a knob costs and buys, in sentences.

        Parameters
        ----------
        stream : str
            Its name.
        learner : str, default None
            Whose knob is turned. None: that of `chooser`.

        Returns
        -------
        list of str
            One for each value but the first, such as "From caution 10 (the default) to 30: the
            loss rises by 0.4 %, the violation falls by 35 %."
        """
        points = [point for point in self._chosen(stream, learner) if point.knob]
        several, found = len({point.budget for point in points}) > 1, list[str]()
        for old, new in pairwise(points):
            if old.budget == new.budget:
                at = f"At {old.budget:g} calls per round: " if several else ""
                usual = [" (the default)" * point.default for point in (old, new)]
                moved = f"From {old.at}{usual[0]} to {new.value:g}{usual[1]}"
                found.append(f"{at}{moved}: {_changes(old, new)}.")
        return found

    def choice(self, stream: str, learner: str | None = None) -> list[str]:
        """Which caution to begin with, and which to take if that breaks or costs too much.

        Parameters
        ----------
        stream : str
            Its name.
        learner : str, default None
            Whose caution. None: that of `chooser`.

        Returns
        -------
        list of str
            Up to three sentences; none if no point is the default, or budgets differ.
        """
        points = [point for point in self._chosen(stream, learner) if point.knob == "caution"]
        usual = next((point for point in points if point.default), None)
        if usual is None or len({point.budget for point in points}) > 1:
            return []
        cheaper = [p for p in points if p.loss < usual.loss - _STAYS * abs(usual.loss)]
        less = [p for p in points if p.violation < (1.0 - _STAYS) * usual.violation]
        more = [p for p in cheaper if p.violation > (1.0 + _STAYS) * usual.violation]
        if better := [p for p in cheaper if p in less]:
            p = min(better, key=lambda p: p.loss)
            return [f"Take {p.at} in place of the default, {usual.at}: {_changes(usual, p)}."]
        found = [
            f"Begin with the default, {usual.at}: it costs {usual.loss:.4g} per round and breaks "
            f"limits by {usual.violation:.3g}."
        ]
        if less:
            p = max(less, key=lambda p: (p.violation, -p.loss))
            found.append(f"If that breaks too much, take {p.at}: {_changes(usual, p)}.")
        if more:
            p = min(more, key=lambda p: (p.violation, p.loss))
            found.append(f"If it costs too much, take {p.at}: {_changes(usual, p)}.")
        return found

    def _chosen(self, stream: str, learner: str | None) -> tuple[Point, ...]:
        learner = self.chooser(stream) if learner is None else learner
        return () if learner is None else self.frontier(stream, learner)

    def against_resolving(self, stream: str, learner: str | None = None) -> list[str]:
        """Which caution lies nearest to re-solving at equal violation, in sentences.

        Parameters
        ----------
        stream : str
            Its name.
        learner : str, default None
            Whose caution. None: that of `chooser`.

        Returns
        -------
        list of str
            One for each headroom that some caution breaks limits about as much as, without those
            that another headroom beats in loss and violation; then what headroom is. Nothing
            if no learner has a headroom.
        """
        ours, found, headrooms = self._chosen(stream, learner), list[str](), False
        learner = self.chooser(stream) if learner is None else learner
        for name in self.learners:
            points = [p for p in self.frontier(stream, name) if p.knob == "headroom"]
            headrooms = headrooms or bool(points)
            for theirs in undominated(points) if ours else ():
                found += match_sentence(str(learner), ours, name, theirs)
        if not headrooms:
            return []
        if learner and not found:
            found = [f"No caution of {learner} breaks limits about as much as re-solving does."]
        about = "re-solving leaves free, under every limit, h times what its room usually shrinks"
        return [*found, f"Headroom h: {about} by from one round to the next."]

    def ranking(
        self,
        stream: str,
        learner: str,
        baseline: str | None = None,
        *,
        budget: float | None = None,
        seconds: float | None = None,
    ) -> Ranking:
        """A learner's frontier, compared with that of a baseline.

        Parameters
        ----------
        stream, learner : str
            Their names.
        baseline : str, default None
            The learner to compare with. None: that of `baseline`.
        budget, seconds : float, default None
            As of `frontier`, for both sides.

        Returns
        -------
        Ranking
            The points, and each number of the comparison.
        """
        ours, theirs = (
            self.frontier(stream, name, budget, seconds=seconds)
            for name in (learner, self.baseline if baseline is None else baseline)
        )
        scale, slowest = self.scale(stream), max((p.seconds for p in ours), default=0.0)
        in_time = [point for point in theirs if point.seconds <= slowest]
        gaps = short = None
        if theirs and scale is not None:
            gaps = tuple(gap(point, theirs, scale) for point in ours)
            short = shortfall(ours, theirs, scale) if ours else None
        savings = (saving(ours, its) if ours and its else None for its in (theirs, in_time))
        return Ranking(stream, learner, budget, ours, gaps, short, *savings)

    def rankings(self, baseline: str | None = None) -> tuple[Ranking, ...]:
        """Every learner on every stream at each budget, against a baseline."""
        places = dict.fromkeys((e.stream, e.learner, e.budget) for e in self.entries)
        order = list(product(self.streams, self.learners))
        ordered = sorted(places, key=lambda at: order.index(at[:2]))
        return tuple(self.ranking(s, name, baseline, budget=b) for s, name, b in ordered)

    def _require_known(self, stream: str, learner: str | None = None) -> None:
        for name, known in ((stream, self.streams), (learner, (None, *self.learners))):
            if not isinstance(name, str | None) or name not in known:
                there = listed(map(repr, filter(None, known)))
                raise InvalidInput(f"This comparison has {there}, not {shown(name)}.")

    def summary(self) -> dict[str, Any]:
        """Everything as plain data; infinite ends are None."""
        rankings = [each._asdict() for each in self.rankings()]
        for found in rankings:
            gaps = found.pop("gaps") or (None,) * len(found["points"])
            points = zip(found["points"], gaps, strict=True)
            found["points"] = [p._asdict() | {"gap": gap} for p, gap in points]
        runs = [{**e._asdict(), "regret": plain_interval(e.regret)} for e in self.entries]
        parts = {"streams": plain(self.venues), "runs": plain(runs), "rankings": plain(rankings)}
        return {"format": COMPARISON_FORMAT, "baseline": self.baseline, **parts}

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Read the comparison that `save` wrote.

        Parameters
        ----------
        folder : path
            The folder it was saved to.

        Returns
        -------
        Comparison
            The same again.
        """
        path = as_path(folder, "The folder of a comparison") / FILES[0]
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            require_format(path, data["format"], COMPARISON_FORMAT, "Compare again.")
            venues, entries = data["streams"], data["runs"]
            for plain in (*venues, *(entry["regret"] for entry in entries if entry["regret"])):
                least = math.inf if plain.get("feasible") is False else -math.inf
                for end, infinite in (("lower", least), ("upper", math.inf)):
                    plain[end] = infinite if plain[end] is None else plain[end]
            for entry in entries:
                entry["regret"] = entry["regret"] and tuple(entry["regret"].values())
            return cls(tuple(Venue(**v) for v in venues), tuple(Entry(**e) for e in entries))
        except OSError as error:
            raise InvalidInput(f"{path} is no comparison: {error.strerror}.") from None
        except (ValueError, KeyError, TypeError) as error:
            raise BrokenFile(f"{path} is no comparison, or was changed: {error!r}.") from None

    def to_pandas(self) -> Any:
        """One row for each run, as a pandas DataFrame."""
        return formatting.data_frame(self._rows())

    def plot(self) -> Any:
        """The frontiers of every stream: a matplotlib Figure, which a notebook shows."""
        return report_module("comparison").plot(self)

    def _repr_html_(self) -> Any:
        return report_module("comparison").html(self)

    def save(self, folder: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write comparison.json (everything) and comparison.csv (the runs), each whole or not at
        all.

        Parameters
        ----------
        folder : path
            The folder to write to; created if it does not exist.
        force : bool, default False
            Whether files that are there already may be overwritten.
        """
        folder = as_path(folder, "The folder")
        there = any((folder / name).exists() for name in FILES)
        refuse(
            folder.is_file() or (there and not as_flag(force, "force")),
            f"{folder} is a file, or holds a comparison already: name another folder, or "
            "overwrite it with force.",
        )
        folder.mkdir(parents=True, exist_ok=True)
        rows, table = self._rows(), io.StringIO()
        writer = csv.DictWriter(table, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: csv_cell(at) for key, at in row.items()} for row in rows)
        plain = json.dumps(self.summary(), indent=2, allow_nan=False) + "\n"
        checkpoint.write(folder / FILES[1], table.getvalue().encode())
        checkpoint.write(folder / FILES[0], plain.encode())

    def _rows(self) -> list[dict[str, Any]]:
        rows = [entry._asdict() for entry in self.entries]
        for row in rows:
            row["regret_lower"], row["regret_upper"] = row.pop("regret") or (None, None)
        return rows

    def about(self, stream: str) -> str:
        """A stream in a line: how long, which seeds, what the best fixed point costs."""
        self._require_known(stream)
        venues = [venue for venue in self.venues if venue.stream == stream]
        seeds = ", ".join(str(venue.seed) for venue in venues)
        means = [venue.mean for venue in venues if venue.mean is not None]
        if len(means) == len(venues):
            known = f"the best fixed point costs {statistics.fmean(means):.6g} per round"
        elif any(venue.feasible is False for venue in venues):
            known = "no point satisfies every constraint"
        else:
            known = "the best fixed point is not known"
        return f"{venues[0].rounds:,} rounds, seed{'s' * (len(venues) > 1)} {seeds}; {known}"

    def warnings(self, stream: str | None = None) -> tuple[str, ...]:
        """What a reader should know of a stream, or of all: why it has no comparator, and whose
        runs were refused and why.
        """
        if stream is not None:
            self._require_known(stream)
        wanted = self.streams if stream is None else (stream,)
        found = [f"{v.stream}: {v.reason}" for v in self.venues if v.reason and v.stream in wanted]
        for (who, why), count in Counter(
            (f"{e.learner} on {e.stream}", e.failure) for e in self.failures if e.stream in wanted
        ).items():
            found.append(f"{who}, {count} run{'s' * (count > 1)}: {why}")
        return tuple(dict.fromkeys(found))

    def __repr__(self) -> str:
        lines, rankings = [], self.rankings()
        for stream in self.streams:
            lines.append(f"{stream}: {self.about(stream)}")
            its = [ranking for ranking in rankings if ranking.stream == stream]
            names = [ranking_name(ranking) for ranking in its]
            said = (*self.steps(stream), *self.choice(stream), *self.against_resolving(stream))
            for first, columns in TABLES:
                shown = formatting.applying(columns, its)
                cells = [(column.title, *map(column.cell, its)) for column in shown]
                rows = [*zip((first, *names), *cells, strict=True)]
                lines += [f"  {line}".rstrip() for line in formatting.aligned(rows)]
            lines += [f"  {sentence}" for sentence in said]
        if sees := feedback.who_sees_what((entry.learner, entry.sees) for entry in self.entries):
            lines.append(sees)
        lines.append(
            f"Gap and shortfall are against {self.baseline}, in % of {self.share_of()}; up to 0.5 "
            "is on its frontier."
        )
        return "\n".join([*lines, *self.warnings()])


def _over_points(form: str, name: str, times: float = 1.0) -> Callable[[Ranking], str]:
    def cell(ranking: Ranking) -> str:
        every = [getattr(point, name) for point in ranking.points]
        return "unknown" if None in every else _range([times * each for each in every], form)

    return cell


def _range(numbers: Sequence[float], form: str) -> str:
    ends = [f"{end:{form}}" for end in (min(numbers), max(numbers))]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


_NO_BASELINE = "no baseline"


def _gaps(ranking: Ranking) -> str:
    gaps = ranking.gaps
    return _NO_BASELINE if gaps is None else _range([100.0 * above for above in gaps], "+.2f")


def _finite(
    name: str, form: str, infinite: str, none: str = _NO_BASELINE, times: float = 1.0
) -> Callable[[Ranking], str]:
    def cell(ranking: Ranking) -> str:
        x: float | None = getattr(ranking, name)
        return none if x is None else infinite if x == math.inf else form.format(times * x)

    return cell


def _some(name: str) -> Callable[[Ranking], bool]:
    return lambda ranking: any(getattr(point, name) for point in ranking.points)


def _or_refused(*columns: Column[Ranking]) -> tuple[Column[Ranking], ...]:
    def cell(column: Column[Ranking], ranking: Ranking) -> str:
        return column.cell(ranking) if ranking.points else "refused"

    return tuple(column._replace(cell=partial(cell, column)) for column in columns)


def _microseconds(ranking: Ranking) -> str:
    return f"{1e6 * statistics.median(point.seconds for point in ranking.points):.0f}"


_IN_TIME = _finite("saving_in_time", "{:.3g}x", "breaks none", "baseline slower")
RANKING_COLUMNS = _or_refused(
    Column("loss", "loss", _over_points(".5g", "loss"), 3),
    Column("regret", "regret", _over_points(".4g", "regret"), applies=_some("regret")),
    Column("violation", "violation", _over_points(".3g", "violation")),
    Column("calls", "calls", _over_points(".3g", "calls")),
    Column("LP solves", "LPs", _over_points(".3g", "solves"), 2, _some("solves")),
    Column("gap %", "gap\n%", _gaps),
    Column("shortfall %", "shortfall\n%", _finite("shortfall", "{:+.2f}", "never", times=100.0)),
    Column("less violation", "less\nbroken", _finite("saving", "{:.3g}x", "breaks none")),
    Column("in equal time", "in equal\ntime", _IN_TIME, 1),
    Column("microseconds per round", "micro-\nsecs", _microseconds),
)
RANKING_ROUND_COLUMNS = _or_refused(
    Column("broken %", "broken\n%", _over_points(".2g", "broken", 100.0)),
    Column("violation p99", "violation\np99", _over_points(".2g", "violation_p99")),
    Column("violation worst", "\nworst", _over_points(".2g", "violation_worst")),
    Column("churn", "churn\nmean", _over_points(".2g", "churn")),
    Column("churn p99", "\np99", _over_points(".2g", "churn_p99"), 2),
    Column("churn worst", "\nworst", _over_points(".2g", "churn_worst"), 1),
)
TABLES = (("learner", RANKING_COLUMNS), ("per round", RANKING_ROUND_COLUMNS))


def ranking_name(ranking: Ranking) -> str:
    return ranking.learner + ("" if ranking.budget is None else f" at {ranking.budget:g}")


def _point(group: Sequence[Entry], by_regret: bool) -> Point | None:
    """The mean over the seeds of one setting; None if one was refused or, by regret, has none."""
    first, regrets = group[0], [entry.regret[1] for entry in group if entry.regret]
    if any(entry.loss is None for entry in group) or (by_regret and len(regrets) < len(group)):
        return None
    numbers: dict[str, Any] = {"regret": statistics.fmean(regrets) if by_regret else None}
    for name in _MEASURED:
        every = [getattr(entry, name) for entry in group]
        over = max if name.endswith("_worst") or name == "infeasibility" else statistics.fmean
        numbers[name] = None if None in every else over(every)
    knob = next((name for name in KNOBS if getattr(first, name) is not None), "")
    numbers |= {"knob": knob, "value": getattr(first, knob, None), "default": first.default}
    return Point(first.caution, first.budget, **numbers)


# What a point has: the mean over seeds, of the worst and of infeasibility the largest of any.
_MEASURED = Point._fields[3:-3]
KNOBS = ("caution", "headroom", "target_violation")


# --- frontiers ------------------------------------------------------------------------------------


def gap(
    ours: Point, baseline: Sequence[Point], scale: float, uncareful: float | None = None
) -> float:
    """By how much our regret is above the best of the baseline at our violation, over `scale`; if
    the baseline is never as careful, above its most careful point, or above `uncareful`.
    """
    near = [p.level for p in baseline if p.violation <= VIOLATION_SLACK * ours.violation]
    careful = min(baseline, key=lambda point: (point.violation, point.level)).level
    above = ours.level - min(near, default=careful if uncareful is None else uncareful)
    return above / (scale or 1.0) if scale > 0.0 or above == 0.0 else math.copysign(math.inf, above)


def shortfall(ours: Sequence[Point], baseline: Sequence[Point], scale: float) -> float:
    """By how much the worst matched point of the baseline is out of our reach, over `scale`;
    infinite where we are never as careful.
    """
    return max(-gap(theirs, ours, scale, math.inf) for theirs in baseline)


def saving(ours: Sequence[Point], baseline: Sequence[Point]) -> float:
    """How many times less violation at equal regret, in the median over the levels of regret that
    both reach.
    """
    reached = max(min(point.level for point in points) for points in (ours, baseline))
    levels = {point.level for point in (*ours, *baseline) if point.level >= reached}

    def least(points: Sequence[Point], level: float) -> float:
        return min(point.violation for point in points if point.level <= level)

    logs = [_log_ratio(least(baseline, level), least(ours, level)) for level in levels]
    # never of -inf and inf: a side that has reached 0 stays there at higher levels
    return math.exp(statistics.median(logs))


def undominated(points: Sequence[Point]) -> list[Point]:
    return [
        p
        for p in points
        if not any(q.level < p.level and q.violation < p.violation for q in points)
    ]


def match_sentence(we: str, ours: Sequence[Point], they: str, theirs: Point) -> list[str]:
    """Which of our points breaks limits as much as one of theirs, and what each costs; nothing
    if none comes near.
    """

    def apart(p: Point) -> float:
        return abs(_log_ratio(p.violation, theirs.violation))

    point = min(ours, key=lambda p: (apart(p), p.level, not p.default))
    if apart(point) > _NEAR:
        return []
    more, size = point.level - theirs.level, abs(theirs.loss)
    costs = "costs as much"
    if size and abs(more) >= _STAYS * size:
        costs = f"costs {percent(abs(more) / size)} {'more' if more > 0.0 else 'less'}"
    return [
        f"{we} at {point.at} breaks limits about as much as {they} at {theirs.at} "
        f"({point.violation:.3g} against {theirs.violation:.3g} per round), and {costs}."
    ]


# Violations up to this far apart, in logarithms, count as about the same.
_NEAR = math.log(1.5)
# Changes of less than this share are not given in numbers.
_STAYS = 0.0005


def _changes(before: Point, after: Point) -> str:
    return f"{_change('loss', before, after)}, {_change('violation', before, after)}"


def _change(what: str, *points: Point) -> str:
    before, after = (getattr(point, what) for point in points)
    size = abs(before)
    if abs(after - before) <= _STAYS * size:
        return f"the {what} stays{' 0' * (before == 0.0)}"
    by = f"from {before:.3g} to {after:.3g}"
    if size and after:
        by = f"by {percent(abs(after - before) / size)}"
        by = f"to {after / before:.3g} times as much" if after / before >= 3.0 else by
    return f"the {what} {'rises' if after > before else 'falls'} {by}"


def _log_ratio(theirs: float, ours: float) -> float:
    if theirs == ours:
        return 0.0
    return math.log(theirs / ours) if min(theirs, ours) else math.copysign(math.inf, theirs - ours)
