"""Whatever a public callable is given, it answers with a value or with a sentence of tidewolf's
own: no foreign exception, no warning.
"""

import importlib
import os
import random
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from tools.public import PACKAGES

from doors import Door, described, doors, hostile, knock

RECORDS = {
    # what tidewolf gives, and nobody makes
    "Certificate", "Comparator", "Decisions", "Intervals", "Rates", "Run",
    "Projected", "Halfspaces", "LinearDescription", "Factors", "Tunnel", "Graph", "Table",
    "ActiveSet", "Adviser", "Comparison", "Named", "Proposals",
    "Explanation", "RunFolder", "Cut", "Demand", "PathShare", "NetworkStream",
    "Builder", "Batch", "Compiled", "Context", "ConvexSet", "CostlyMembership", "LinearTotal",
    "PiecewiseLinear", "Polyhedral", "Projectable",
    "Relaxable",  # abstract
    "every",  # takes nothing
}  # fmt: skip
SHARES = 8
OFTEN = 3
"""How many calls of one name the soak takes: that of a set's first examples, say."""
SOME = 2
"""How many hostile values the quick slice tries for each argument of each callable."""


@pytest.fixture(scope="module")
def every_door(tmp_path_factory):
    here, folder = Path.cwd(), tmp_path_factory.mktemp("doors")
    os.chdir(folder)  # where text is taken for a path, files go there
    try:
        yield list(doors(tmp_path_factory.mktemp("files")))
    finally:
        os.chdir(here)


def findings(door, replaced):
    """What a call showed, if it did, with these arguments in place of the good ones."""
    shown = knock(door.call, {**door.given, **replaced})
    if shown is None:
        return []
    told = ", ".join(f"{name} = {described(bad)}" for name, bad in replaced.items())
    return [f"{door.name}({told}): {shown}"]


def all_at_once(door, rng):
    given = ((name, value) for name, value in door.given.items() if name not in door.fixed)
    return {name: rng.choice(hostile(value)) for name, value in given}


def test_every_public_callable_has_a_door(every_door):
    met = {part for door in every_door for part in (door.name, door.name.partition(".")[0])}
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            tried = name in met | RECORDS or not callable(getattr(module, name))
            assert tried, f"{package}.{name} is not tried"


def test_front_doors_show_no_foreign_exception_on_a_slice(every_door):
    """One call of each kind as it is meant, a few hostile values for each argument, and everything
    at once.
    """
    first, found, rng = dict[str, Door](), list[str](), random.Random(0)
    for door in every_door:
        first.setdefault(door.name, door)
    for door in first.values():
        assert knock(door.call, door.given) is None, door.name
        for name, value in door.given.items():
            if name not in door.fixed:
                for bad in rng.sample(hostile(value), SOME):
                    found += findings(door, {name: bad})
        found += findings(door, all_at_once(door, rng))
    assert not found, "\n".join(found)


@pytest.mark.soak
@pytest.mark.parametrize("share", range(SHARES))
def test_front_doors_show_no_foreign_exception(every_door, share):
    """Every hostile value for every argument of every call, and everything at once, often."""
    found, rng, met = defaultdict(list), random.Random(share), Counter[str]()
    for door in every_door:
        met[door.name] += 1
        if met[door.name] > OFTEN or sum(map(ord, door.name)) % SHARES != share:
            continue
        free = ((name, value) for name, value in door.given.items() if name not in door.fixed)
        tried = [{name: bad} for name, value in free for bad in hostile(value)]
        for replaced in (*tried, *(all_at_once(door, rng) for _ in range(20))):
            for sentence in findings(door, replaced):
                found[sentence.rpartition("[")[2]].append(sentence)
    assert not found, "\n".join(f"{len(each)} like {each[0]}" for each in found.values())
