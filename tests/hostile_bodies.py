"""Bodies of requests with something else at every place, and a process in which no file may be
looked at: `python -m tests.hostile_bodies` builds them all and says what was.
"""

import copy
import os
import pathlib
import sys
from itertools import islice

LINKS = [
    ["SEA", "DEN", 1.0, 4.0],
    {"tail": "DEN", "head": "NYC", "capacity": 2.0, "length": 2.0},
    {"tail": "SEA", "head": "NYC", "name": "direct", "length": 5.0},
    ["NYC", "SEA", 1.0],
]
PAIRS = [["s", "a"], ["a", "t"], ["s", "t"]]

SETS = {
    "Birkhoff": {"n": 3},
    "BoundedPSD": {"n": 2, "tau": 2.0},
    "Box": {"lower": [0.0, 0.0], "upper": [1, 2.0]},
    "CapacitatedFlow": {
        "graph": [{"tail": u, "head": v, "room": 1.0} for u, v in PAIRS],
        "supplies": {"s": 1.0, "t": -1.0},
        "upper": "room",
    },
    "CappedSimplex": {"n": 4, "cap": 0.5},
    "Ellipsoid": {"matrix": [[2.0, 0.0], [0.0, 1.0]], "center": [1.0, 0.0]},
    "Fantope": {"n": 3, "k": 2},
    "FlowPolytope": {"graph": PAIRS, "source": "s", "target": "t"},
    "GroupBall": {"groups": [0, 0, 1]},
    "KNormBall": {"n": 4, "k": 2},
    "KSparse": {"n": [2, 2], "k": 2},
    "Knapsack": {"weights": [1.0, 2.0, 3.0], "total": 2.0},
    "L1Ball": {"n": 3, "tau": 2.0},
    "L2Ball": {"n": 3},
    "LpBall": {"n": 3, "p": 3.0},
    "Matching": {"graph": [["a", "x"], ["a", "y"], ["b", "y"]]},
    "MultiFlow": {
        "graph": PAIRS,
        "commodities": [{"source": "s", "target": "t", "demand": 2.0}, ["a", "t"]],
    },
    "NuclearBall": {"shape": [2, 3]},
    "OrderedWeightedBall": {"weights": [2.0, 1.0]},
    "Permutahedron": {"weights": [1.0, 2.0, 3.0]},
    "Polytope": {"A_ub": [[1.0, 1.0]], "b_ub": [1.0], "bounds": [[0.0, None], [0.0, 1.0]]},
    "Product": {"parts": [{"kind": "Simplex", "n": 2}, {"kind": "L2Ball", "n": 2}]},
    "Scaled": {"K": {"kind": "Simplex", "n": 2}, "factor": 2.0},
    "Shrunk": {"K": {"kind": "L2Ball", "n": 2}, "factor": 0.5},
    "Simplex": {"n": 5},
    "SimplexProduct": {"sizes": [2, 3]},
    "SpanningTrees": {"graph": [["a", "b"], ["b", "c"], ["c", "a"]]},
    "Spectraplex": {"n": 2},
    "Translated": {"K": {"kind": "Simplex", "n": 2}, "shift": [1.0, 0.0]},
    "Transportation": {"rows": [1.0, 1.0], "columns": [1.0, 0.5, 0.5]},
    "VertexHull": {"points": [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]},
}
"""A small set of each kind, as a request describes it."""

NETWORKS = {
    "one": {"graph": LINKS, "source": "SEA", "target": "NYC", "demand": 3.0},
    "all": {"graph": LINKS, "source": {"SEA": 0.5, "DEN": 0.5}, "target": "NYC", "paths": "all"},
    "many": {"graph": LINKS, "commodities": [["SEA", "NYC", 2.0], ["DEN", "NYC", 1.0]]},
    "tunnels": {
        "graph": [{"tail": "SEA", "head": "DEN", "km": 3}, {"tail": "DEN", "head": "NYC", "km": 4}],
        "commodities": [{"source": "SEA", "target": "NYC"}, ["NYC", "DEN"]],
        "paths": "k-shortest",
        "k": 2,
        "lengths": "km",
        "directed": False,
    },
}
WHOLE = {
    "set": {"kind": "Simplex", "n": 3},
    "names": ["a", "b", "c"],
    "rounds": 100,
    "seeds": [3],
    "caution": [2.0],
    "title": "Three of them.",
    "learners": [
        {"name": "Ensemble", "experts": ["last", 2], "season": 4, "start": [1.0, 0.0, 0.0]}
    ],
    "expire_after": 10,
    "deadline": 0.5,
    "stale_after": 60,
    "fallback": {"a": 1.0},
    "why": "a trial",
}
STRINGS = ("/etc/passwd", "../x", "file.csv", "C:\\x", "\x00", "links.graphml", "postgresql://x/y")
OTHERS = (
    *(None, True, 0, -1, 2, 2**62, 10**400, 1e308, -0.5, 5e-324, float("nan"), "\ud800"),
    *([], {}, [[]], [None], [[1.0, 2.0], [3.0]], ["a", 1], {"a": 1}),
    *({"kind": "Simplex", "n": 2}, [{"kind": "Simplex", "n": 10**12}]),
)
FILE_KEYS = ("stream", "files", "incumbent", "outputs", "sweep", "problem", "names_file", "folder")


def bodies():
    """Good ones."""
    for kind, given in SETS.items():
        yield {"set": {"kind": kind, **given}}
    for given in NETWORKS.values():
        yield {"set": given}
    yield WHOLE


def changed(body, values):
    """The same with each of these values in place of each part of it, and as another key."""
    for path in places(body):
        for value in values:
            yield put(body, path, value)
    for name in FILE_KEYS:
        yield {**body, name: values[0]}
        yield {**body, "set": {**body["set"], name: values[0]}}


def places(value):
    """The ways to each part."""
    items = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, part in items:
        yield (key,)
        for rest in places(part):
            yield (key, *rest)


def put(body, path, value):
    """The same with this value at the end of that way."""
    body = copy.deepcopy(body)
    part = body
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return body


def main():
    """Build one of so many of them with names of files; print each file that was looked at, and
    each error that is no sentence.
    """
    from tidewolf.core.errors import TidewolfError
    from tidewolf.service.models import Description

    for body in bodies():  # what is imported when it is first used
        Description.read(body).build()
    seen, every = [], int(sys.argv[1])
    _watch(seen)
    count = 0
    for body in bodies():
        for hostile in islice(changed(body, STRINGS), count % every, None, every):
            count += 1
            try:
                Description.read(hostile).build()
            except TidewolfError as error:
                str(error)
            except Exception as error:
                seen.append(f"{type(error).__name__}: {error} ({hostile})")
    del sys.modules["os"].watched
    sys.stdout.write("\n".join([*seen, f"{count} bodies"]))
    return len(seen)


def _watch(seen):
    """Note every look at a file, but for what Python imports."""
    os.watched = True  # type: ignore[attr-defined]

    def note(event, arguments):
        if event in ("open", "os.listdir", "os.scandir", "glob.glob") and hasattr(os, "watched"):
            name = str(arguments[0])
            if not name.endswith((".py", ".pyc", ".so")) and "site-packages" not in name:
                seen.append(f"{event} {name}")

    def asked(*given, **_):
        seen.append(f"stat {given}")
        raise AssertionError(f"a file was looked at: {given}")

    sys.addaudithook(note)
    for name in ("stat", "lstat", "access"):
        setattr(os, name, asked)
    for name in ("stat", "exists", "is_file", "is_dir", "resolve", "open"):
        setattr(pathlib.Path, name, asked)


if __name__ == "__main__":
    sys.exit(main())
