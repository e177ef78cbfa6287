"""Properties of every convex set; test your own with `check_set`.

    v = lmo(d) is a member, and <d, v> <= <d, z> for every member z                    oracle
    ||v - center|| <= radius,   ||v - w|| <= diameter                                  sizes
    center + inner_radius u is a member for every unit u along the affine hull         inner ball
    tangent = tangent^2 = tangent',   <d - tangent(d), z - center> = 0                 affine hull
    infeasibility is 0 for members, positive elsewhere
    <y - project(y), z - project(y)> <= 0 for every member z                           projection
    any factors of a member beside the others of another are a member                  product
    names are different texts, one for each entry                                      names

Also: structured answers agree with their dense points, and compiled oracles with both. The same
question gets the same answer, in the library and dtype of the question. Nothing given is changed.
Directions are random, along the axes, tied, zero, huge and tiny. The checks run in the library and
dtype of `center`, and numbers are compared up to 1e4 eps of the sizes that went into them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tidewolf.core.arrays import eps_of, like, norm
from tidewolf.core.errors import NotFinite, WrongShape, WrongType
from tidewolf.core.randomness import generator
from tidewolf.core.types import Array, Floats
from tidewolf.core.vertices import Sparse
from tidewolf.sets.base import (
    Compiled,
    ConvexSet,
    LinearDescription,
    Polyhedral,
    Projectable,
    Relaxable,
    membership_tolerance,
)
from tidewolf.testing.checks import (
    Checks,
    OnPass,
    as_floats,
    format_point,
    raises,
    require,
    require_array,
    require_at_most,
    require_close,
    require_member,
    require_value,
)

_AXES = 24
"""Along how many axes of a large set directions are tried."""
_SMALL = 400
"""Up to how many entries `tangent` is applied to a whole basis."""
_SOLVER = 1e-6
"""How far an LP solver's answer may be off, relative to the sizes in it."""


def check_set(K: ConvexSet, *, seed: int = 0, on_pass: OnPass | None = None) -> None:
    """Run every check of sets on one set.

    Parameters
    ----------
    K : ConvexSet
        The set, such as an instance of a class of your own.
    seed : int, default 0
        Seed of the random directions.
    on_pass : callable, optional
        Called with the name of every check that passes.

    Raises
    ------
    CheckFailed
        At the first check that fails, with the property and the numbers.
    WrongType
        If K is not a set.

    Examples
    --------
    >>> tw.testing.check_set(tw.sets.Simplex(3))  # returns nothing: every check passes
    >>> checks = []
    >>> tw.testing.check_set(tw.sets.Simplex(3), on_pass=checks.append)
    >>> checks[0]
    'center is a member'
    """
    if not isinstance(K, ConvexSet):
        raise WrongType(
            f"check_set takes a set, an instance of a subclass of ConvexSet, not {K!r}."
        )
    name = repr(K) if is_dataclass(K) else type(K).__name__
    SET_CHECKS.run(SetTrial(K, seed), name, on_pass)


@dataclass(frozen=True)
class SetTrial:
    """A set, the directions it is tested in, and its answers; numbers are float64 on the host,
    rounded to the set's dtype.
    """

    K: ConvexSet
    seed: int

    def given(self, x: Floats) -> Array:
        """A fresh array in the library and dtype of the set."""
        return like(x.copy(), self.K.center)

    def rounded(self, x: Floats) -> Floats:
        return as_floats(self.given(x))

    def lmo(self, d: Floats) -> Floats:
        return as_floats(self.K.lmo(self.given(d)))

    def tangent(self, d: Floats) -> Floats:
        return as_floats(self.K.tangent(self.given(d)))

    def oracle_error(self, d: Floats) -> float:
        """By how much the oracle states that its answer may fall short."""
        return self.K.answer(self.given(d)).error

    def slack(self, d: Floats) -> float:
        """The rounding error allowed in <d, member>."""
        return self.eps * norm(d) * self.size

    def square_slack(self, a: Floats, b: Floats) -> float:
        """The rounding error allowed in products of members with one another and with a and b."""
        return self.eps * max(1.0, self.size) ** 2 * max(1.0, norm(a) + norm(b))

    def require_member(self, x: Floats, what: str) -> None:
        require_member(self.K, self.given(x), what)

    def require_no_worse(self, d: Floats, v: Floats, other: Floats) -> None:
        """Fail the check if the oracle's answer v to d is worse than another member."""
        gap = float(np.vdot(d, v - other))
        require(
            gap <= self.oracle_error(d) + self.slack(d),
            f"in direction {format_point(d)} the answer {format_point(v)} is worse than the member "
            f"{format_point(other)} by {gap:.3g}",
        )

    def farthest(self, start: Floats, d: Floats) -> Floats:
        """A member far from `start`: climb the distance by its linear minorants."""
        z = self.lmo(d)
        for _ in range(3):
            z = self.lmo(self.rounded(start - z))
        return z

    @cached_property
    def center(self) -> Floats:
        return as_floats(self.K.center)

    @cached_property
    def eps(self) -> float:
        return 1e4 * eps_of(self.K.center)

    @cached_property
    def size(self) -> float:
        """How large members are: the scale of rounding errors in them."""
        return max(self.K.radius, norm(self.center)) or 1.0

    def rng(self, purpose: str) -> np.random.Generator:
        return generator(self.seed, f"check set: {purpose}")

    def normals(self, purpose: str, count: int) -> list[Floats]:
        rng = self.rng(purpose)
        return [self.rounded(rng.standard_normal(self.K.shape)) for _ in range(count)]

    @cached_property
    def axes(self) -> list[Floats]:
        """Plus and minus the unit arrays; some of them if there are many."""
        n = math.prod(self.K.shape)
        units = [np.eye(1, n, i) for i in self.rng("axes").permutation(n)[:_AXES]]
        return [sign * unit.reshape(self.K.shape) for unit in units for sign in (1.0, -1.0)]

    @cached_property
    def directions(self) -> list[Floats]:
        """Random, tied, along the axes, zero, huge and tiny."""
        rng, shape = self.rng("ties"), self.K.shape
        ties = [rng.integers(-1, 2, shape).astype(np.float64) for _ in range(4)]
        huge = 1e150 if eps_of(self.K.center) < 1e-10 else 1e15
        far = [self.rounded(s * d) for d in self.normals("scales", 2) for s in (huge, 1 / huge)]
        flat = [np.zeros(shape), np.ones(shape)]
        return [*self.normals("directions", 12), *ties, *self.axes, *flat, *far]

    @cached_property
    def answers(self) -> list[tuple[Floats, Floats]]:
        """Directions d with the oracle's answers v."""
        return [(d, self.lmo(d)) for d in self.directions]

    @cached_property
    def members(self) -> list[Floats]:
        """The center, the answers, and mixtures of them."""
        corners = np.stack([self.center, *(v for _, v in self.answers)])
        rng, even = self.rng("mixtures"), np.full(len(corners), 0.1)
        mixtures = [np.tensordot(rng.dirichlet(even), corners, 1) for _ in range(12)]
        return [self.rounded(x) for x in (*corners, *mixtures)]


SET_CHECKS = Checks[SetTrial]()


@SET_CHECKS("its center is a read-only member")
def center_is_a_member(trial: SetTrial) -> None:
    center = trial.K.center
    trial.require_member(trial.center, "the center")
    if type(center) is np.ndarray:
        writeable = center.flags.writeable and np.shares_memory(center, trial.K.center)
        require(not writeable, "the center can be written to; set center.flags.writeable = False")


@SET_CHECKS("its sizes are finite, not negative, and fit together")
def sizes_make_sense(trial: SetTrial) -> None:
    K, n = trial.K, math.prod(trial.K.shape)
    for name in ("radius", "diameter"):
        size = getattr(K, name)
        require(math.isfinite(size) and size >= 0, f"{name} is {size}")
    require(0 <= K.dimension <= n, f"dimension is {K.dimension}, points have {n} entries")
    inside, most = K.inner_radius, K.radius * (1 + trial.eps) if K.dimension else 0.0
    fits = inside is None or 0 <= inside <= most
    require(fits, f"inner_radius is {inside}, expected 0 to {most:.6g} or None")


@SET_CHECKS("what it is given stays unchanged and is not kept")
def directions_stay_unchanged(trial: SetTrial) -> None:
    K = trial.K
    calls: dict[str, Callable[[Array], Any]] = {
        name: getattr(K, name) for name in ("lmo", "tangent", "infeasibility", "atom")
    }
    if isinstance(K, Projectable):
        calls["project"] = K.project
    if isinstance(K, Relaxable):
        calls["relax"] = K.relax
    for d, (name, call) in itertools.product(trial.normals("inputs", 2), calls.items()):
        before = trial.center if name == "atom" else d
        x = trial.given(before)
        y = call(x)
        same = np.array_equal(as_floats(x), before)
        require(same, f"{name} turned {format_point(before)} into {format_point(x)}")
        if type(x) is np.ndarray:
            require(x.flags.writeable, f"{name} made its input read-only")
            shared = name in ("lmo", "project", "relax") and np.shares_memory(x, y)
            require(not shared, f"{name} returned memory of its input; return a new array")


@SET_CHECKS("the oracle's answer is a member, and the same direction gets the same answer")
def answers_are_members(trial: SetTrial) -> None:
    for d, v in trial.answers:
        trial.require_member(v, f"the answer to {format_point(d)}")
    for d, v in trial.answers:
        again = f"{format_point(d)} got {format_point(v)} and then another answer"
        require(np.array_equal(v, trial.lmo(d)), again)


@SET_CHECKS("no member is better than the oracle's answer")
def answers_are_best(trial: SetTrial) -> None:
    for d, v in trial.answers:
        best = min(trial.members, key=lambda z, d=d: float(np.vdot(d, z)))  # type: ignore[misc]
        trial.require_no_worse(d, v, best)


@SET_CHECKS("a warm start gives the same answer each time, as good as its stated error")
def warm_starts_do_no_harm(trial: SetTrial) -> None:
    warm = None
    for d, v in trial.answers:
        first, again = (trial.K.answer(trial.given(d), warm) for _ in range(2))
        same = first.vertex.key() == again.vertex.key() and first.error == again.error
        require(same, f"in direction {format_point(d)} two answers differ")
        # a number of NumPy's would turn float32 into float64 when it is added
        kind = type(first.error)
        require(kind in (float, int), f"its error is a {kind.__name__}; return float(error)")
        gap = float(np.vdot(d, as_floats(first.vertex.dense(trial.given(d))) - v))
        worse = f"in direction {format_point(d)}, how much worse it is than a cold answer"
        require_at_most(gap, first.error + trial.slack(d), worse)
        warm = first.warm


@SET_CHECKS("the oracle is as good as a linear program over its description, and no better")
def answers_match_the_linear_program(trial: SetTrial) -> None:
    if not isinstance(trial.K, Polyhedral):
        return
    description = trial.K.description()
    for d in [*trial.normals("programs", 3), *trial.axes[:4]]:
        value, program = float(np.vdot(d, trial.lmo(d))), _minimum(description, d)
        room = max(_SOLVER, trial.eps) * norm(d) * max(1.0, trial.size)
        fits = program - room <= value <= program + trial.oracle_error(d) + room
        where = f"in direction {format_point(d)}"
        require(fits, f"{where} it reaches {value:.9g}, and the program {program:.9g}")


@SET_CHECKS(
    "no member is farther than radius from the center, nor than diameter from another member"
)
def sizes_bound_members(trial: SetTrial) -> None:
    K, room = trial.K, trial.eps * trial.size
    far = [trial.farthest(trial.center, d) for d in trial.normals("far", 3)]
    for z in [*trial.members, *far]:
        distance = f"radius is {K.radius:.6g}, and the distance of {format_point(z)}"
        require_at_most(norm(z - trial.center), K.radius + room, distance)
    for d, v in trial.answers:
        for w in (trial.lmo(-d), trial.farthest(v, d)):
            apart = f"the distance between the members {format_point(v)} and {format_point(w)}"
            require_at_most(norm(v - w), K.diameter + room, f"diameter: {apart}")


@SET_CHECKS("the center is inside the set in every direction in which the set is not flat")
def center_is_inside(trial: SetTrial) -> None:
    for d in [*trial.normals("inside", 3), *trial.axes]:
        along = trial.tangent(d)
        if norm(along) <= trial.eps * norm(d):
            continue
        ends = (trial.lmo(trial.rounded(along)), trial.lmo(trial.rounded(-along)))
        least, most, at = (float(np.vdot(along, z)) for z in (*ends, trial.center))
        flat = most - least <= 10 * trial.slack(along)
        require(
            flat or at > least + 1e-9 * (most - least),
            f"along {format_point(along)} members reach from {least:.6g} to {most:.6g}, and the "
            f"center is at {at:.6g}, on the boundary",
        )


@SET_CHECKS("tangent is an orthogonal projection, of rank `dimension`")
def tangent_projects(trial: SetTrial) -> None:
    K, n = trial.K, math.prod(trial.K.shape)
    a, b = trial.normals("tangents", 2)
    Ta, Tb = trial.tangent(a), trial.tangent(b)
    room = trial.eps * (norm(a) + norm(b))
    require(Ta.shape == K.shape, f"it has shape {Ta.shape}, points have shape {K.shape}")
    linear = norm(trial.tangent(trial.rounded(2 * a - b)) - 2 * Ta + Tb)
    require_at_most(linear, 3 * room, "it is not linear: |T(2a - b) - 2 T(a) + T(b)|")
    require_at_most(norm(trial.tangent(Ta) - Ta), room, "it is not idempotent: |T(T(a)) - T(a)|")
    skew = abs(float(np.vdot(Ta, b) - np.vdot(a, Tb)))
    require_at_most(skew, room * (norm(a) + norm(b)), "it is not symmetric: |<Ta, b> - <a, Tb>|")
    if n <= _SMALL:
        units = enumerate(np.eye(n))
        rank = sum(trial.tangent(u.reshape(K.shape)).reshape(-1)[i] for i, u in units)
        require_close(rank, K.dimension, 0.1, f"dimension is {K.dimension}; against the rank, it")


@SET_CHECKS(
    "members differ along the tangent space only, so tangent(d) has the same best members as d"
)
def tangent_keeps_the_answer(trial: SetTrial) -> None:
    for d in trial.normals("across", 6):
        along, room = trial.tangent(d), trial.slack(d)
        of = f"for d = {format_point(d)}"
        spread = max(abs(float(np.vdot(d - along, z - trial.center))) for z in trial.members)
        require_at_most(spread, room, f"{of}, the range of <d - tangent(d), z> over members")
        worse = float(np.vdot(d, trial.lmo(along) - trial.lmo(d)))
        error = trial.oracle_error(along)
        require_at_most(worse, error + 2 * room, f"{of}, how much worse the answer to tangent(d)")


@SET_CHECKS("infeasibility is 0 for members and positive for others")
def infeasibility_tells_members(trial: SetTrial) -> None:
    for z in trial.members:
        trial.require_member(z, "the member")
    for d in trial.normals("outside", 6):
        along = trial.tangent(d)
        for kind, start, out in (
            ("beyond the best answer to its own direction", trial.lmo(along), along),
            ("off the affine hull", trial.center, d - along),
        ):
            length = norm(out)
            if length > math.sqrt(trial.eps) * norm(d):
                x = trial.given(start - trial.size * out / length)
                off = float(trial.K.infeasibility(x))
                outside = off > membership_tolerance(x, trial.K.radius)
                require(outside, f"{format_point(x)}, {kind}, has infeasibility {off:.3g}")


@SET_CHECKS(
    "the ball of radius inner_radius around the center, within the affine hull, is in the set"
)
def inner_ball_is_inside(trial: SetTrial) -> None:
    inside = trial.K.inner_radius or 0.0
    for d in [*trial.axes, *trial.normals("ball", 12)] if inside else []:
        u = trial.tangent(d)
        if norm(u) > math.sqrt(trial.eps):
            x = trial.center + inside * u / norm(u)
            trial.require_member(x, f"inner_radius is {inside:.6g}, and a point of the ball")


@SET_CHECKS("answers come in the library and dtype of the direction")
def answers_keep_the_dtype(trial: SetTrial) -> None:
    K = trial.K
    for dtype in (np.float32, np.float64):
        d = trial.normals("dtypes", 1)[0].astype(dtype)
        v = K.answer(d).vertex.dense(d)
        require_array(v, K.shape, d, f"answer of a {d.dtype} direction")
        require_array(K.tangent(d), K.shape, d, f"tangent of a {d.dtype} direction")
        require(not v.flags.writeable, "the answer can be written to")
        require_member(K, v, f"the {d.dtype} answer")


@SET_CHECKS("lmo takes whole numbers and refuses what is not a direction")
def directions_are_looked_at(trial: SetTrial) -> None:
    """Only if `lmo` is ours: a set with its own `lmo` gets directions that are checked already."""
    K = trial.K
    if type(K).lmo is not ConvexSet.lmo:
        return
    whole = trial.rng("whole numbers").integers(-5, 6, K.shape)
    require_array(K.lmo(whole), K.shape, np.zeros(0), "the answer to integers")
    same = np.array_equal(K.lmo(whole), K.lmo(whole.astype(np.float64)))
    require(same, f"{whole.tolist()} got another answer than as floats")
    bad: dict[str, tuple[Any, type[Exception]]] = {
        "a direction with a NaN": (np.full(K.shape, np.nan), NotFinite),
        "a direction with an infinite entry": (np.full(K.shape, np.inf), NotFinite),
        "a direction with another shape": (np.ones((*K.shape, 2)), WrongShape),
        "a text": ("up", WrongType),
    }
    for what, (direction, fitting) in bad.items():
        require(raises(fitting, K.lmo, direction), f"{what} was answered")


@SET_CHECKS("a structured answer agrees with its dense point")
def vertices_agree(trial: SetTrial) -> None:
    e, x = trial.normals("vertices", 2)
    for d, v in trial.answers:
        vertex = trial.K.answer(trial.given(d)).vertex
        start = trial.given(x)
        dense = as_floats(vertex.dense(start))
        square = vertex.distance2(start, float(np.vdot(x, x)))
        gaps = {
            "lmo": np.vdot(d, dense - v) / (norm(d) or 1.0),
            "inner": vertex.inner(trial.given(e)) - np.vdot(dense, e),
            "distance2": square - np.vdot(x - dense, x - dense),
            "blend": as_floats(vertex.blend(start, 0.25)) - (0.75 * x + 0.25 * dense),
        }
        for name, gap in gaps.items():
            what = f"for the answer {format_point(dense)}, {name}"
            require_close(gap, 0.0, trial.square_slack(e, x), what)
        require(np.array_equal(as_floats(start), x), "blend changed the point it was given")


@SET_CHECKS("its compiled oracle gives the vertex of `answer`")
def compiled_oracles_agree(trial: SetTrial) -> None:
    K = trial.K
    if not isinstance(K, Compiled):
        return
    for d in trial.directions:
        vertex, other = K.answer(d).vertex, K.minimiser(d)
        require(
            type(vertex) is Sparse and vertex.key() == other.key(),
            f"in direction {format_point(d)} it is {format_point(other.dense(d))}, and `answer` "
            f"gives {format_point(vertex.dense(d))}",
        )


def lengths(gram: Floats) -> Floats:
    """|a_i - a_j|^2 from a Gram matrix, whatever its origin."""
    squares = np.diag(gram)
    return np.asarray(squares[:, None] - 2.0 * gram + squares[None, :])


@SET_CHECKS("a table of answers agrees with their dense points")
def tables_agree(trial: SetTrial) -> None:
    K, e, reference = trial.K, trial.normals("tables", 1)[0], trial.given(trial.center)
    answered = [K.answer(trial.given(d)).vertex for d, _ in trial.answers[:12]]
    vertices = [K.atom(K.center), *answered]
    table, count = answered[0].table(), len(vertices)
    for row, vertex in enumerate(vertices):
        table = table.append(vertex, row)
    points = np.stack([as_floats(vertex.dense(reference)).reshape(-1) for vertex in vertices])
    weights = trial.rng("weights").standard_normal(count)
    gaps = {
        "atom": points[0] - trial.center.reshape(-1),
        "inner": table.inner(trial.given(e), count) - points @ e.reshape(-1),
        "combine": as_floats(table.combine(weights, reference)).reshape(-1) - weights @ points,
        "gram": lengths(table.gram[:count, :count]) - lengths(points @ points.T),
    }
    for name, gap in gaps.items():
        require_close(gap, 0.0, trial.square_slack(e, weights), name)
    for vertex, point in zip(vertices, points, strict=True):
        found = table.find(vertex, count)
        same = found is not None and np.array_equal(points[found], point)
        require(same, f"find gives row {found} for a vertex that was appended")


@SET_CHECKS("project gives the nearest member, and that of a far point does not beat the oracle")
def projections_are_nearest(trial: SetTrial) -> None:
    K, room = trial.K, trial.eps * max(1.0, trial.size)
    if not isinstance(K, Projectable):
        return
    for z in trial.members[-6:]:
        moved = norm(as_floats(K.project(trial.given(z))) - z)
        require_at_most(moved, room, f"the step from the member {format_point(z)}")
    for d, far in itertools.product(trial.normals("projections", 4), (0.01, 1.0, 100.0, 1e8)):
        y = trial.rounded(trial.lmo(d) - far * trial.size * d)
        p = as_floats(K.project(trial.given(y)))
        projected = f"the projection {format_point(p)} of {format_point(y)}"
        trial.require_member(p, projected)
        gap = float(np.vdot(y - p, trial.lmo(p - y) - p))
        most = room * max(1.0, norm(y - p))
        require_at_most(gap, most, f"a member is nearer than {projected}; the gap")
    for d, v in trial.answers:
        if np.any(d):
            y = trial.center - 100 * trial.size * (d / norm(d))
            trial.require_no_worse(d, v, as_floats(K.project(trial.given(y))))


@SET_CHECKS("relax is a projection that keeps members and brings no point farther from any member")
def relaxations_come_no_farther(trial: SetTrial) -> None:
    K = trial.K
    if not isinstance(K, Relaxable):
        return
    around = [trial.center + trial.size * d for d in trial.normals("relaxations", 4)]
    for y in [*trial.members[-3:], *around]:
        answer = K.relax(trial.given(y))
        require_array(answer, K.shape, trial.given(y), "the relaxed point")
        relaxed = as_floats(answer)
        again = norm(as_floats(K.relax(trial.given(relaxed))) - relaxed)
        twice = f"the second step of {format_point(y)}, relaxed twice,"
        require_at_most(again, trial.eps * max(1.0, trial.size), twice)
        for z in trial.members:
            before, after = norm(y - z), norm(relaxed - z)
            farther = f"the distance of {format_point(y)}, once relaxed, from {format_point(z)}"
            require_at_most(after, before + trial.eps * max(1.0, trial.size + before), farther)


@SET_CHECKS("it is the product of its factors, and their sizes are those of the set")
def factors_make_the_set(trial: SetTrial) -> None:
    K, parts, n = trial.K, trial.K.factors, math.prod(trial.K.shape)
    if parts is None:
        return
    starts, room = np.asarray(parts.starts), trial.eps * trial.size
    rise = starts[0] == 0 and np.all(np.diff(starts, append=n) > 0)
    require(
        starts.dtype == np.int64 and rise,
        f"its factors start at {format_point(starts)}, expected int64 from 0, rising, below {n}",
    )
    for name, whole, each in (
        ("radii", K.radius, parts.radii),
        ("diameters", K.diameter, parts.diameters),
    ):
        fits = len(each) == len(starts) and np.min(each) >= 0
        require(fits, f"its factors have the {name} {format_point(each)}")
        require_close(norm(each), whole, room, f"the norm of the {name} of its factors")
    exact = not parts.exact or isinstance(K, Projectable)
    require(exact, "its factors have an exact projection, and the set has no `project`")

    def sizes(x: Floats) -> Floats:
        return trial.size * np.sqrt(np.add.reduceat((x.reshape(-1) / trial.size) ** 2, starts))

    rng, counts = trial.rng("factors"), np.diff(starts, append=n)
    for (d, v), (_, w) in itertools.pairwise(trial.answers):
        away = float((sizes(v - trial.center) - parts.radii).max())
        apart = float((sizes(v - w) - parts.diameters).max())
        require_at_most(max(away, apart), room, "how far a factor is above its radius or diameter")
        chosen = np.repeat(rng.random(len(starts)) < 0.5, counts).reshape(K.shape)
        trial.require_member(np.where(chosen, v, w), "a point of factors of two members")
        some = trial.tangent(np.where(chosen, d, 0.0))
        apart = norm(np.where(chosen, trial.tangent(d), 0.0) - some)
        differs = "how far tangent of some factors differs from that of all"
        require_at_most(apart, trial.eps * norm(d), differs)


@SET_CHECKS("its names, if it has any, are different texts, one for each entry")
def names_name_entries(trial: SetTrial) -> None:
    K, entries = trial.K, math.prod(trial.K.shape)
    names = K.names
    if names is None:
        return
    texts = isinstance(names, tuple) and all(isinstance(name, str) for name in names)
    require(texts, f"its names are {names!r}, expected a tuple of texts")
    require(len(names) == entries, f"it has {len(names)} names for {entries} entries")
    require(len(set(names)) == entries, f"two of its entries have the same name: {names!r}")
    for i, name in enumerate(names):
        found = np.asarray(K.places[name]).tolist()
        require(found == [i], f"{name!r}, the name of entry {i}, stands for {found}")


@SET_CHECKS("it prints its name, equals a set of the same settings, and moves to another dtype")
def set_prints_and_compares(trial: SetTrial) -> None:
    K, reference = trial.K, np.zeros(1, dtype=np.float32)
    require_value(K, ConvexSet)
    moved = "after to(float32), which moves cached properties, the center"
    require_array(K.to(reference).center, K.shape, reference, moved)


def _minimum(description: LinearDescription, d: Floats) -> float:
    """The least <d, x> over the description, NaN if the solver finds none."""
    from scipy.optimize import linprog

    of, cost = description, d.reshape(-1)
    bounds = np.stack([of.lower, of.upper], axis=1)
    shift = 0.0 if of.shift is None else float(cost @ of.shift)
    cost = cost if of.lift is None else of.lift.T @ cost
    found = linprog(cost, of.A_ub, of.b_ub, of.A_eq, of.b_eq, bounds, method="highs")
    return float(found.fun) + shift if found.status == 0 else math.nan
