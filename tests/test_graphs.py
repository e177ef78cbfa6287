"""Settings that describe graphs: what files may write, what sets get of it, which setting an error
names.
"""

from __future__ import annotations

import numpy as np
import pytest

from tidewolf import sets
from tidewolf.core.errors import TidewolfError
from tidewolf.core.settings import constructor_of, settings_of
from tidewolf.sets.graphs import (
    ArcBounds,
    Commodities,
    Demands,
    Indices,
    LinkLengths,
    Links,
    Node,
    NodeNames,
    Supplies,
)

LINKS = [("s", "a"), ("a", "t"), ("s", "t")]


@pytest.mark.parametrize(
    ("check", "written", "frozen"),
    [
        (Links(), "net.csv", "net.csv"),
        (Links(), [["s", "t"], ["t", 3]], (("s", "t"), ("t", 3))),
        (Links(), "", None),
        (Links(), [["s", "t", "u"]], None),
        (Links(), [["s", 1.5]], None),
        (Node(), "s", "s"),
        (Node(), 7, 7),
        (Node(), 1.5, None),
        (NodeNames(), ["s", 7], ("s", 7)),
        (NodeNames(), "s", None),
        (Commodities(), "traffic.csv", "traffic.csv"),
        (Commodities(), [["s", "t", 2], ["s", "a"]], (("s", "t", 2), ("s", "a"))),
        (Commodities(), [], None),
        (Commodities(), [["s", "t", "much"]], None),
        (Supplies(), {"s": 1, "t": -1.0}, (("s", 1.0), ("t", -1.0))),
        (Supplies(), [[0, 2.0], [1, -2]], ((0, 2.0), (1, -2.0))),
        (Supplies(), "supplies.csv", "supplies.csv"),
        (Supplies(), {"s": "all"}, None),
        (ArcBounds(), 2, 2.0),
        (ArcBounds(), [1, 2.5], (1, 2.5)),
        (LinkLengths(), "km", "km"),
        (Demands(), [1.0, 2.0], (1.0, 2.0)),
        (Indices(), [0, 2], (0, 2)),
    ],
)
def test_what_a_file_writes_is_read_frozen_or_not_at_all(check, written, frozen):
    assert check.read(written) == frozen
    assert frozen is None or hash(check.read(written)) is not None


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        (sets.FlowPolytope, {"graph": [["s", "t"]], "source": "s", "target": "t"}),
        (sets.MultiFlow, {"graph": [["s", "t"]], "commodities": [["s", "t", 2.0]]}),
        (
            sets.CapacitatedFlow,
            {"graph": [["s", "t"]], "supplies": {"s": 1.0, "t": -1.0}, "upper": 2.0},
        ),
        (sets.Matching, {"graph": [["s", "t"]], "perfect": True}),
        (sets.SpanningTrees, {"graph": [["s", "t"], ["t", "s"]]}),
    ],
)
def test_every_set_over_a_graph_is_made_of_what_a_file_writes(kind, written):
    make = constructor_of(kind)
    by_key = {setting.key: setting for setting in settings_of(make).values()}
    given = {by_key[key].name: by_key[key].check.read(value) for key, value in written.items()}
    K = make(**given)
    assert K.infeasibility(K.lmo(np.ones(K.shape))) <= 1e-9


@pytest.mark.parametrize(
    ("make", "setting"),
    [
        (lambda: sets.FlowPolytope.from_edges(7, source="s", target="t"), "edges"),
        (lambda: sets.FlowPolytope.from_edges(LINKS, source="q", target="t"), "source"),
        (lambda: sets.FlowPolytope.from_edges(LINKS, source="s", target="s"), "target"),
        (lambda: sets.FlowPolytope.from_edges(LINKS, source="t", target="s"), "target"),
        (lambda: sets.FlowPolytope.from_edges([(0, 1), (1, 0)], source=0, target=1), "edges"),
        (lambda: sets.FlowPolytope([0, 5], [1, 2], 0, 2, ("a", "b", "c")), "tails"),
        (lambda: sets.FlowPolytope([0, 1], [1, 2], 0, 9, ("a", "b", "c")), "target"),
        (lambda: sets.FlowPolytope([0, 1], [1], 0, 1, ("a", "b")), "heads"),
        (lambda: sets.MultiFlow.from_edges(LINKS, [("s", "q")]), "commodities"),
        (lambda: sets.MultiFlow.from_edges(LINKS, [("s", "t")], lengths=[1.0]), "lengths"),
        (lambda: sets.CapacitatedFlow.from_edges(LINKS, supplies={"q": 1}, upper=1.0), "supplies"),
        (lambda: sets.CapacitatedFlow.from_edges(LINKS, supplies={}, upper=[1.0]), "upper"),
        (lambda: sets.CapacitatedFlow.from_edges(LINKS, supplies={}, upper=1, lower=2), "lower"),
        (lambda: sets.Matching(LINKS, perfect="yes"), "perfect"),
        (lambda: sets.Matching(LINKS, lefts=["s"]), "lefts"),
        (lambda: sets.SpanningTrees([("a", "b"), ("c", "d")]), "edges"),
        (lambda: sets.SpanningTrees(LINKS, nodes=["s"]), "nodes"),
        (lambda: sets.Polytope([[1.0]], bounds=(0, 1)), "A_ub"),
        (lambda: sets.Polytope(bounds=[(1, 0)]), "bounds"),
        (lambda: sets.Transportation([1.0], [2.0]), "columns"),
    ],
)
def test_an_error_names_the_setting_it_speaks_of(make, setting):
    with pytest.raises(TidewolfError) as caught:
        make()
    assert caught.value.setting == setting
