"""A link is added to a network in service: how far decisions move, and what comes after.

Links of `routing` and `geant` that decisions use most are taken out beforehand, one at a time;
after 500 rounds the link is back, and the session goes on as a learner of the whole network
(`session.migrate`). Moves are half L1, as shares of how far the first decision of a fresh start is
from the last one before. The decision that stands after the change is the last one carried over, so
that its share is 0 by construction; the next is the first that knows of the link. It moves at once
where limits were broken without the link, as on `geant`, and wherever re-solving finds it better.
Then 200 rounds: mean loss and violation of the session that went on, of a fresh start, and of one
that had the link all along.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import tidewolf as tw
from tidewolf.core.errors import GraphError
from tidewolf.core.types import Array
from tidewolf.methods.moves import distance_moved

STREAMS, BEFORE, AFTER, SEVERAL, BAR = ("routing", "geant"), 500, 200, 5, 0.2


class Added(NamedTuple):
    """What came of adding one link."""

    link: str
    moved: float
    """by the decision that stands after the change"""
    fresh: float
    """by the first decision of a fresh start"""
    after_one: float
    """by the next decision"""
    usual: float
    """by the decision of that round where the link was always there"""
    broken: float
    """the violation a round of the last 100 rounds without the link"""
    on: tuple[float, float]
    """mean loss and violation of the rounds that follow"""
    anew: tuple[float, float]
    always: tuple[float, float]


def report(seed: int = 0) -> None:
    """Print a line for each link, and whether each share is below the bar."""
    for name in STREAMS:
        problem = tw.problems.named(name)(rounds=BEFORE + AFTER, seed=seed)
        for advised in (False, True):
            with_advice = "season and re-solving" if advised else "bare"
            print(f"{name}, seed {seed}, {with_advice}: what stands, the next / always there,")
            print("  violation a round before; then mean loss / violation")
            found = links_added(problem, advised)
            for one in found:
                print("  " + _line(one))
            for what, moved in (("stands", "moved"), ("comes next", "after_one")):
                worst = max(getattr(one, moved) / one.fresh for one in found)
                words = "holds" if worst < BAR else "FAILS"
                print(f"  {words}: what {what} moves by {worst:.3f} of a fresh start at most")


def _line(one: Added) -> str:
    on, anew, always = (f"{loss:.4f} / {violation:.4f}" for loss, violation in one[-3:])
    shares = f"{one.moved / one.fresh:.3f}, {one.after_one / one.fresh:.3f}"
    return (
        f"{one.link:28} {shares} / {one.usual / one.fresh:.3f}, {one.broken:.4f}; "
        f"went on {on}, anew {anew}, always there {always}"
    )


def links_added(problem: tw.problems.Problem, advised: bool, most: int = SEVERAL) -> list[Added]:
    """The links that decisions use most, and that the flow can do without, each added by itself."""
    whole = tw.Session(_learner(problem, problem.K, advised))
    use = _play(whole, problem, np.arange(len(problem.labels)), 0, BEFORE)[2]
    found: list[Added] = []
    for link in np.argsort(-use, kind="stable").tolist():
        try:
            K, kept = _without(problem.K, link)
        except GraphError:
            continue
        found.append(_added(problem, K, kept, link, whole.state, advised))
        if len(found) == most:
            break
    return found


def _added(
    problem: tw.problems.Problem, K: tw.sets.FlowPolytope, kept: Array, link: int, state: object,
    advised: bool,
) -> Added:  # fmt: skip
    every = np.arange(len(problem.labels))
    session = tw.Session(_learner(problem, K, advised))
    _play(session, problem, kept, 0, BEFORE - 100)
    broken = _play(session, problem, kept, BEFORE - 100, 100)[1] / 100
    last = np.zeros(len(every))
    last[kept] = session.play()
    whole = _learner(problem, problem.K, advised)
    session.migrate(whole)
    moved = distance_moved(session.play(), last)
    fresh, always = tw.Session(whole), tw.Session(whole, state)  # type: ignore[arg-type]
    first = distance_moved(fresh.play(), last)
    stood = session.play(), always.play()
    sums = [_play(one, problem, every, BEFORE, 1) for one in (session, fresh, always)]
    next_moved = distance_moved(session.play(), stood[0])
    usual = distance_moved(always.play(), stood[1])
    means = []
    for one, (loss, violation, _) in zip((session, fresh, always), sums, strict=True):
        more = _play(one, problem, every, BEFORE + 1, AFTER - 1)
        means.append(((loss + more[0]) / AFTER, (violation + more[1]) / AFTER))
    return Added(problem.labels[link], moved, first, next_moved, usual, broken, *means)


def _learner(problem: tw.problems.Problem, K: tw.sets.ConvexSet, advised: bool) -> tw.Ensemble:
    if not advised:
        return tw.Ensemble(K)
    season = tw.experts.Season(problem.period or 96)
    return tw.Ensemble(K, experts=[season, tw.experts.Resolve()])


def _without(K: tw.sets.ConvexSet, link: int) -> tuple[tw.sets.FlowPolytope, Array]:
    """The network without a link, and which links it has."""
    assert isinstance(K, tw.sets.FlowPolytope)
    kept = np.delete(np.arange(len(K.tails)), link)
    links = [(K.nodes[K.tails[i]], K.nodes[K.heads[i]]) for i in kept]
    ends = {"source": K.nodes[K.source], "target": K.nodes[K.target]}
    return tw.sets.FlowPolytope.from_edges(links, **ends), kept


def _play(
    session: tw.Session, problem: tw.problems.Problem, kept: Array, start: int, rounds: int
) -> tuple[float, float, Array]:
    """Total loss, violation and decisions of some rounds on these links."""
    costs, capacities = problem.stream.losses.C, problem.stream.constraints.c  # type: ignore[attr-defined]
    loss, violation, use = 0.0, 0.0, np.zeros(len(kept))
    for t in range(start, start + rounds):
        x = session.play()
        loss += float(costs[t, kept] @ x)
        violation += max(0.0, float((x - capacities[t, kept]).max()))
        use += x
        session.observe(costs=costs[t, kept], capacities=capacities[t, kept])
    return loss, violation, use
