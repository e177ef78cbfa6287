"""Laws that every convex set keeps; run them on your own with `check_set`.

    v = lmo(d) is a member, and <d, v> <= <d, z> for every member z                    oracle
    ||v - center|| <= radius,   ||v - w|| <= diameter                                  sizes
    center + inner_radius u is a member for every unit u along the affine hull         inner ball
    tangent = tangent^2 = tangent',   <d - tangent(d), z - center> = 0                 affine hull
    excess is 0 for members, positive elsewhere
    <y - project(y), z - project(y)> <= 0 for every member z                           projection

and: structured answers agree with their dense points, and compiled oracles with both; the same
question gets the same answer, in the library and dtype it was asked in, and nothing given is
changed. Directions are random, along the axes, tied, zero, huge and tiny; the laws run in the
library and dtype of `center`, and numbers are compared up to 1e4 eps of the sizes that went into
them.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.arrays import eps_of, like, to_numpy
from tidewolf.core.errors import LawBroken, NotFinite, WrongShape, WrongType
from tidewolf.core.randomness import generator
from tidewolf.core.types import Array, Floats
from tidewolf.core.values import identity
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
from tidewolf.testing.laws import Kept, run_laws

_AXES = 24
"""Along how many axes of a large set directions are tried."""
_SMALL = 400
"""Up to how many entries `tangent` is applied to a whole basis."""
_SOLVER = 1e-6
"""What an LP solver's answer may be off, relative to the sizes in it."""


def check_set(K: ConvexSet, *, seed: int = 0, kept: Kept | None = None) -> None:
    """Raise `LawBroken`, with the law and the numbers, unless K keeps every law; `kept` is told
    every law that is kept.
    """
    if not isinstance(K, ConvexSet):
        raise WrongType(
            f"check_set takes a set, an instance of a subclass of ConvexSet, not {K!r}."
        )
    trial = Trial(K, seed)
    run_laws(LAWS, trial, trial.name, kept)


class Asked(NamedTuple):
    """A direction and the oracle's answer, in float64."""

    d: Floats
    v: Floats


@dataclass(frozen=True)
class Trial:
    """A set, what it is asked, and what it answers; numbers are float64 on the host, rounded to
    what the set's dtype holds.
    """

    K: ConvexSet
    seed: int

    def require(self, kept: bool | np.bool_, law: str, detail: str) -> None:
        """Raise `LawBroken` unless the law is kept; `detail` is a clause with the numbers."""
        if not kept:
            raise LawBroken(f"{self.name} breaks the law that {law}: {detail}.")

    @property
    def name(self) -> str:
        return repr(self.K) if is_dataclass(self.K) else type(self.K).__name__

    def given(self, x: Floats) -> Array:
        """A fresh array as the set is given it."""
        return like(x.copy(), self.K.center)

    def rounded(self, x: Floats) -> Floats:
        return _numbers(self.given(x))

    def lmo(self, d: Floats) -> Floats:
        return _numbers(self.K.lmo(self.given(d)))

    def tangent(self, d: Floats) -> Floats:
        return _numbers(self.K.tangent(self.given(d)))

    def excess(self, x: Floats) -> float:
        return float(self.K.excess(self.given(x)))

    def allowed(self, x: Floats) -> float:
        """The excess a member may have by rounding."""
        return membership_tolerance(self.given(x), self.K.radius)

    @cached_property
    def center(self) -> Floats:
        return _numbers(self.K.center)

    @cached_property
    def eps(self) -> float:
        return 1e4 * eps_of(self.K.center)

    @cached_property
    def size(self) -> float:
        """How large members are: the scale of rounding errors in them."""
        return max(self.K.radius, float(np.linalg.norm(self.center))) or 1.0

    def normals(self, purpose: str, count: int) -> list[Floats]:
        rng = generator(self.seed, f"check set: {purpose}")
        return [self.rounded(rng.standard_normal(self.K.shape)) for _ in range(count)]

    @cached_property
    def axes(self) -> list[Floats]:
        """Plus and minus the unit arrays; some of them when there are many."""
        n = math.prod(self.K.shape)
        chosen = generator(self.seed, "check set: axes").permutation(n)[:_AXES]
        return [
            sign * unit
            for i in chosen
            for unit in [np.eye(1, n, i).reshape(self.K.shape)]
            for sign in (1.0, -1.0)
        ]

    @cached_property
    def directions(self) -> list[Floats]:
        """Random, tied, along the axes, zero, huge and tiny."""
        rng = generator(self.seed, "check set: ties")
        ties = [rng.integers(-1, 2, self.K.shape).astype(np.float64) for _ in range(4)]
        huge = 1e150 if eps_of(self.K.center) < 1e-10 else 1e15
        far = [scale * d for d in self.normals("scales", 2) for scale in (huge, 1 / huge)]
        return [
            *self.normals("directions", 12),
            *ties,
            *self.axes,
            np.zeros(self.K.shape),
            np.ones(self.K.shape),
            *map(self.rounded, far),
        ]

    @cached_property
    def answers(self) -> list[Asked]:
        return [Asked(d, self.lmo(d)) for d in self.directions]

    @cached_property
    def members(self) -> list[Floats]:
        """The center, the answers, and mixtures of them."""
        corners = np.stack([self.center, *(v for _, v in self.answers)])
        rng = generator(self.seed, "check set: mixtures")
        mixtures = [
            np.tensordot(rng.dirichlet(np.full(len(corners), 0.1)), corners, 1) for _ in range(12)
        ]
        return [self.rounded(x) for x in (*corners, *mixtures)]


def center_is_a_member(trial: Trial) -> None:
    K, law = trial.K, "its center is a read-only member"
    trial.require(
        tuple(K.center.shape) == K.shape,
        law,
        f"the center has shape {tuple(K.center.shape)}, points have shape {K.shape}",
    )
    trial.require(np.isfinite(trial.center).all(), law, f"the center is {_shown(trial.center)}")
    excess = trial.excess(trial.center)
    trial.require(
        excess <= trial.allowed(trial.center),
        law,
        f"the center {_shown(trial.center)} has excess {excess:.3g}",
    )
    if type(K.center) is np.ndarray:
        open_door = K.center.flags.writeable and np.shares_memory(K.center, K.center)
        trial.require(
            not open_door, law, "the center can be written to; set center.flags.writeable = False"
        )


def sizes_make_sense(trial: Trial) -> None:
    K, law = trial.K, "its sizes are finite, not negative, and fit together"
    for name in ("radius", "diameter"):
        size = getattr(K, name)
        trial.require(math.isfinite(size) and size >= 0, law, f"{name} is {size}")
    inside = K.inner_radius
    trial.require(
        inside is None or 0 <= inside <= K.radius * (1 + trial.eps),
        law,
        f"inner_radius is {inside}, radius is {K.radius:.6g}",
    )
    trial.require(
        0 <= K.dimension <= math.prod(K.shape),
        law,
        f"dimension is {K.dimension}, points have shape {K.shape}",
    )
    trial.require(
        K.dimension > 0 or inside in (None, 0),
        law,
        f"the set is a single point, and inner_radius is {inside}",
    )


def nothing_is_changed(trial: Trial) -> None:
    K, law = trial.K, "what it is given stays unchanged and is not kept"
    calls: dict[str, Callable[[Array], Any]] = {
        "lmo": K.lmo,
        "tangent": K.tangent,
        "excess": K.excess,
        "atom": K.atom,
    }
    if isinstance(K, Projectable):
        calls["project"] = K.project
    if isinstance(K, Relaxable):
        calls["relax"] = K.relax
    for d in trial.normals("inputs", 2):
        for name, call in calls.items():
            before = trial.center if name == "atom" else d
            x = trial.given(before)
            y = call(x)
            trial.require(
                np.array_equal(_numbers(x), before),
                law,
                f"{name} turned {_shown(before)} into {_shown(_numbers(x))}",
            )
            if type(x) is np.ndarray:
                trial.require(x.flags.writeable, law, f"{name} made its input read-only")
                kept = name in ("lmo", "project", "relax") and np.shares_memory(x, y)
                trial.require(
                    not kept,
                    law,
                    f"{name} answered with memory of its input; answer with a new array",
                )


def answers_are_members(trial: Trial) -> None:
    K, law = trial.K, "the oracle's answer is a member"
    for d, v in trial.answers:
        trial.require(
            v.shape == K.shape,
            law,
            f"the answer to {_shown(d)} has shape {v.shape}, points have shape {K.shape}",
        )
        trial.require(np.isfinite(v).all(), law, f"the answer to {_shown(d)} is {_shown(v)}")
        excess = trial.excess(v)
        trial.require(
            excess <= trial.allowed(v),
            law,
            f"the answer to {_shown(d)} is {_shown(v)}, with excess {excess:.3g}",
        )


def same_question_same_answer(trial: Trial) -> None:
    law = "the same direction gets the same answer"
    for d, v in trial.answers:
        again = trial.lmo(d)
        trial.require(
            np.array_equal(v, again), law, f"{_shown(d)} got {_shown(v)} and then {_shown(again)}"
        )


def answers_are_best(trial: Trial) -> None:
    law = "no member is better than the oracle's answer"
    for d, v in trial.answers:
        best = min(trial.members, key=lambda z, d=d: float(np.vdot(d, z)))  # type: ignore[misc]
        gap, error = float(np.vdot(d, v - best)), trial.K.answer(trial.given(d)).error
        trial.require(
            gap <= error + trial.eps * float(np.linalg.norm(d)) * trial.size,
            law,
            f"in direction {_shown(d)} the answer {_shown(v)} is worse than the member "
            f"{_shown(best)} by {gap:.3g}",
        )


def warm_starts_do_no_harm(trial: Trial) -> None:
    law, warm = (
        "a warm start is worth its word: the same answer each time, and as good as its error says",
        None,
    )
    for d, v in trial.answers:
        first, again = (trial.K.answer(trial.given(d), warm) for _ in range(2))
        same = first.vertex.key() == again.vertex.key() and first.error == again.error
        trial.require(same, law, f"in direction {_shown(d)} two answers differ")
        # one of NumPy's would turn float32 into float64 where it is added
        number = type(first.error) in (float, int)
        trial.require(
            number,
            law,
            f"its error is a {type(first.error).__name__}, not a plain number; give float(error)",
        )
        gap = float(np.vdot(d, _numbers(first.vertex.dense(trial.given(d))) - v))
        room = first.error + trial.eps * float(np.linalg.norm(d)) * trial.size
        trial.require(
            gap <= room,
            law,
            f"in direction {_shown(d)} it is worse than a cold answer by {gap:.3g}, error "
            f"{first.error:.3g}",
        )
        warm = first.warm


def answers_match_the_linear_program(trial: Trial) -> None:
    law = "the oracle is as good as a linear program over its description, and no better"
    if not isinstance(trial.K, Polyhedral):
        return
    description = trial.K.description()
    for d in [*trial.normals("programs", 3), *trial.axes[:4]]:
        value, program, error = (
            float(np.vdot(d, trial.lmo(d))),
            _minimum(description, d),
            trial.K.answer(trial.given(d)).error,
        )
        trial.require(
            program is not None,
            law,
            f"a linear program over the description has no solution in direction {_shown(d)}",
        )
        assert program is not None
        room = max(_SOLVER, trial.eps) * float(np.linalg.norm(d)) * max(1.0, trial.size)
        detail = f"in direction {_shown(d)} it reaches {value:.9g}, the program {program:.9g}"
        trial.require(program - room <= value <= program + error + room, law, detail)


def radius_bounds(trial: Trial) -> None:
    K, law = trial.K, "no member is farther from the center than radius"
    for z in [
        *trial.members,
        *(_farthest(trial, trial.center, d) for d in trial.normals("far", 3)),
    ]:
        away = float(np.linalg.norm(z - trial.center))
        trial.require(
            away <= K.radius + trial.eps * trial.size,
            law,
            f"{_shown(z)} is {away:.6g} away, radius is {K.radius:.6g}",
        )


def diameter_bounds(trial: Trial) -> None:
    K, law = trial.K, "no two members are farther apart than diameter"
    for d, v in trial.answers:
        for w in (trial.lmo(-d), _farthest(trial, v, d)):
            apart = float(np.linalg.norm(v - w))
            detail = (
                f"{_shown(v)} and {_shown(w)} are {apart:.6g} apart, diameter is {K.diameter:.6g}"
            )
            trial.require(apart <= K.diameter + trial.eps * trial.size, law, detail)


def tangent_projects(trial: Trial) -> None:
    law = "tangent is an orthogonal projection"
    a, b = trial.normals("tangents", 2)
    Ta, Tb = trial.tangent(a), trial.tangent(b)
    room = trial.eps * float(np.linalg.norm(a) + np.linalg.norm(b))
    trial.require(
        Ta.shape == trial.K.shape,
        law,
        f"tangent answers shape {Ta.shape}, points have shape {trial.K.shape}",
    )
    linear = float(np.linalg.norm(trial.tangent(trial.rounded(2 * a - b)) - 2 * Ta + Tb))
    trial.require(
        linear <= 3 * room,
        law,
        f"it is not linear: tangent(2a - b) differs from 2 tangent(a) - tangent(b) by {linear:.3g}",
    )
    twice = float(np.linalg.norm(trial.tangent(Ta) - Ta))
    trial.require(
        twice <= room, law, f"it is not idempotent: applied twice it moves by another {twice:.3g}"
    )
    skew = abs(float(np.vdot(Ta, b) - np.vdot(a, Tb)))
    trial.require(
        skew <= room * float(np.linalg.norm(b) + np.linalg.norm(a)),
        law,
        f"it is not symmetric: <Ta, b> - <a, Tb> = {skew:.3g}",
    )


def tangent_keeps_the_answer(trial: Trial) -> None:
    law = (
        "members differ along the tangent space only, so that tangent(d) has the same best members "
        "as d"
    )
    for d in trial.normals("across", 6):
        across, room = d - trial.tangent(d), trial.eps * float(np.linalg.norm(d)) * trial.size
        spread = max(abs(float(np.vdot(across, z - trial.center))) for z in trial.members)
        trial.require(
            spread <= room,
            law,
            f"<d - tangent(d), z> varies by {spread:.3g} over members, d = {_shown(d)}",
        )
        worse = float(np.vdot(d, trial.lmo(trial.tangent(d)) - trial.lmo(d)))
        error = trial.K.answer(trial.given(trial.tangent(d))).error
        trial.require(
            worse <= error + 2 * room,
            law,
            f"the answer to tangent(d) is worse by {worse:.3g}, d = {_shown(d)}",
        )


def dimension_is_the_rank(trial: Trial) -> None:
    K, law, n = trial.K, "dimension is the rank of tangent", math.prod(trial.K.shape)
    if n <= _SMALL:
        trace = sum(
            float(trial.tangent(unit.reshape(K.shape)).reshape(-1)[i])
            for i, unit in enumerate(np.eye(n))
        )
        trial.require(
            abs(trace - K.dimension) <= 0.1,
            law,
            f"the rank is {trace:.6g}, dimension is {K.dimension}",
        )


def excess_tells_members(trial: Trial) -> None:
    law = "excess is 0 for members and positive for others"
    for z in trial.members:
        excess = trial.excess(z)
        trial.require(
            excess <= trial.allowed(z), law, f"the member {_shown(z)} has excess {excess:.3g}"
        )
    for d in trial.normals("outside", 6):
        along = trial.tangent(d)
        for kind, out in (
            ("beyond the best answer to its own direction", along),
            ("off the affine hull", d - along),
        ):
            length = float(np.linalg.norm(out))
            if length > math.sqrt(trial.eps) * float(np.linalg.norm(d)):
                x = (trial.lmo(along) if out is along else trial.center) - trial.size * out / length
                excess = trial.excess(x)
                trial.require(
                    excess > trial.allowed(x), law, f"{_shown(x)}, {kind}, has excess {excess:.3g}"
                )


def inner_ball_is_inside(trial: Trial) -> None:
    K, law = (
        trial.K,
        "the ball of radius inner_radius around the center, within the affine hull, is in the set",
    )
    if not K.inner_radius:
        return
    for d in [*trial.axes, *trial.normals("ball", 12)]:
        u = trial.tangent(d)
        length = float(np.linalg.norm(u))
        if length > math.sqrt(trial.eps):
            x = trial.center + K.inner_radius * u / length
            excess = trial.excess(x)
            trial.require(
                excess <= trial.allowed(x),
                law,
                f"inner_radius is {K.inner_radius:.6g}, and {_shown(x)} has excess {excess:.3g}",
            )


def answers_keep_the_dtype(trial: Trial) -> None:
    K, law = trial.K, "answers come in the library and floating dtype of the direction"
    for dtype in (np.float32, np.float64):
        d = trial.normals("dtypes", 1)[0].astype(dtype)
        for name, answer in (("answer", K.answer(d).vertex.dense(d)), ("tangent", K.tangent(d))):
            found = getattr(answer, "dtype", type(answer).__name__)
            trial.require(
                type(answer) is np.ndarray and found == dtype,
                law,
                f"{name} of a {np.dtype(dtype)} direction is {found}",
            )
        v = K.answer(d).vertex.dense(d)
        trial.require(not v.flags.writeable, law, "the answer can be written to")
        trial.require(
            float(K.excess(v)) <= membership_tolerance(v, K.radius),
            law,
            f"the {v.dtype} answer has excess {K.excess(v):.3g}",
        )


def directions_are_looked_at(trial: Trial) -> None:
    """Only where `lmo` is ours: a set that brings its own gets directions the machinery has looked
    at.
    """
    K, law = trial.K, "lmo takes whole numbers and refuses what is no direction"
    if type(K).lmo is not ConvexSet.lmo:
        return
    whole = generator(trial.seed, "check set: whole numbers").integers(-5, 6, K.shape)
    trial.require(
        K.lmo(whole).dtype == np.float64,
        law,
        f"a direction of integers got an answer of {K.lmo(whole).dtype}",
    )
    trial.require(
        np.array_equal(K.lmo(whole), K.lmo(whole.astype(np.float64))),
        law,
        f"{whole.tolist()} got another answer than as floats",
    )
    bad: dict[str, tuple[Any, type[Exception]]] = {
        "a NaN": (np.full(K.shape, np.nan), NotFinite),
        "an infinite entry": (np.full(K.shape, np.inf), NotFinite),
        "another shape": (np.ones((*K.shape, 2)), WrongShape),
        "text": ("up", WrongType),
    }
    for what, (direction, fitting) in bad.items():
        try:
            K.lmo(direction)
        except fitting:
            continue
        trial.require(
            False,
            law,
            f"a direction with {what} was answered" if what != "text" else "a text was answered",
        )


def vertices_agree(trial: Trial) -> None:
    law = "a structured answer agrees with its dense point"
    e, x = trial.normals("vertices", 2)
    for d, v in trial.answers:
        vertex = trial.K.answer(trial.given(d)).vertex
        reference, room = (
            trial.given(x),
            trial.eps
            * max(1.0, trial.size) ** 2
            * max(1.0, float(np.linalg.norm(e) + np.linalg.norm(x))),
        )
        dense, start = _numbers(vertex.dense(reference)), trial.given(x)
        gaps = {
            "lmo": np.vdot(d, dense - v) / (float(np.linalg.norm(d)) or 1.0),
            "inner": vertex.inner(trial.given(e)) - np.vdot(dense, e),
            "distance2": (
                vertex.distance2(start, float(np.vdot(x, x))) - np.vdot(x - dense, x - dense)
            ),
            "blend": np.abs(_numbers(vertex.blend(start, 0.25)) - (0.75 * x + 0.25 * dense)).max(),
        }
        for name, gap in gaps.items():
            trial.require(
                abs(float(gap)) <= room,
                law,
                f"{name} is off by {float(gap):.3g} for the answer {_shown(dense)}",
            )
        trial.require(
            np.array_equal(_numbers(start), x), law, "blend changed the point it was given"
        )


def compiled_oracles_agree(trial: Trial) -> None:
    K, law = trial.K, "its compiled oracle gives the vertex of `answer`"
    if not isinstance(K, Compiled):
        return
    for d in trial.directions:
        vertex, twin = K.answer(d).vertex, K.minimiser(d)
        trial.require(
            type(vertex) is Sparse and vertex.key() == twin.key(),
            law,
            f"in direction {_shown(d)} it is {_shown(twin.dense(d))}, and `answer` gives "
            f"{_shown(_numbers(vertex.dense(d)))}",
        )


def lengths(gram: Floats) -> Floats:
    """|a_i - a_j|^2 from a Gram matrix, whatever its origin."""
    squares = np.diag(gram)
    return np.asarray(squares[:, None] - 2.0 * gram + squares[None, :])


def tables_agree(trial: Trial) -> None:
    law = "a table of answers agrees with their dense points"
    e, reference = trial.normals("tables", 1)[0], trial.given(trial.center)
    vertices = [
        trial.K.atom(trial.K.center),
        *(trial.K.answer(trial.given(d)).vertex for d, _ in trial.answers[:12]),
    ]
    table = vertices[1].table()
    for row, vertex in enumerate(vertices):
        table = table.append(vertex, row)
    count = len(vertices)
    points = np.stack([_numbers(vertex.dense(reference)) for vertex in vertices]).reshape(count, -1)
    weights = generator(trial.seed, "check set: weights").standard_normal(count)
    gaps = {
        "atom": points[0] - trial.center.reshape(-1),
        "inner": table.inner(trial.given(e), count) - points @ e.reshape(-1),
        "combine": _numbers(table.combine(weights, reference)).reshape(-1) - weights @ points,
        "gram": lengths(table.gram[:count, :count]) - lengths(points @ points.T),
    }
    room = (
        trial.eps
        * max(1.0, trial.size) ** 2
        * max(1.0, float(np.linalg.norm(e) + np.linalg.norm(weights)))
    )
    for name, gap in gaps.items():
        off = float(np.abs(gap).max())
        trial.require(off <= room, law, f"{name} is off by {off:.3g}")
    for vertex in vertices:
        found = table.find(vertex, len(vertices))
        same = found is not None and np.array_equal(
            vertices[found].dense(reference), vertex.dense(reference)
        )
        trial.require(same, law, f"find gives row {found} for a vertex that was appended")


def projections_are_nearest(trial: Trial) -> None:
    K, law = trial.K, "project gives the nearest member"
    if not isinstance(K, Projectable):
        return
    for z in trial.members[-6:]:
        moved = float(np.linalg.norm(_numbers(K.project(trial.given(z))) - z))
        trial.require(
            moved <= trial.eps * max(1.0, trial.size),
            law,
            f"the member {_shown(z)} is moved by {moved:.3g}",
        )
    for d in trial.normals("projections", 4):
        for far in (0.01, 1.0, 100.0, 1e8):
            y = trial.rounded(trial.lmo(d) - far * trial.size * d)
            p = _numbers(K.project(trial.given(y)))
            excess, room = (
                trial.excess(p),
                trial.eps * max(1.0, trial.size) * max(1.0, float(np.linalg.norm(y - p))),
            )
            trial.require(
                excess <= trial.allowed(p),
                law,
                f"{_shown(y)} is projected on {_shown(p)}, with excess {excess:.3g}",
            )
            gap = float(np.vdot(y - p, trial.lmo(p - y) - p))
            trial.require(
                gap <= room,
                law,
                f"{_shown(y)} is projected on {_shown(p)}, and a nearer member exists (gap "
                f"{gap:.3g})",
            )


def answers_match_the_projection(trial: Trial) -> None:
    law = "no projection of a far point is better than the oracle's answer"
    if not isinstance(trial.K, Projectable):
        return
    for d, v in trial.answers:
        length = float(np.linalg.norm(d))
        if length > 0:
            p = _numbers(
                trial.K.project(trial.given(trial.center - 100 * trial.size * (d / length)))
            )
            gap, error = float(np.vdot(d, v - p)), trial.K.answer(trial.given(d)).error
            detail = (
                f"in direction {_shown(d)} the answer {_shown(v)} is worse than {_shown(p)} by "
                f"{gap:.3g}"
            )
            trial.require(gap <= error + trial.eps * length * trial.size, law, detail)


def relaxations_come_no_farther(trial: Trial) -> None:
    K, law = (
        trial.K,
        "relax is a projection that keeps members and brings no point farther from any member",
    )
    if not isinstance(K, Relaxable):
        return
    for y in [
        *trial.members[-3:],
        *(trial.center + trial.size * d for d in trial.normals("relaxations", 4)),
    ]:
        given = trial.given(y)
        answer = K.relax(given)
        same = type(answer) is type(given) and answer.dtype == given.dtype
        trial.require(
            same,
            law,
            f"a {given.dtype} point is answered as a {type(answer).__name__} of {answer.dtype}",
        )
        relaxed = _numbers(answer)
        again = float(np.linalg.norm(_numbers(K.relax(trial.given(relaxed))) - relaxed))
        trial.require(
            again <= trial.eps * max(1.0, trial.size),
            law,
            f"relaxed twice, {_shown(y)} moves by another {again:.3g}",
        )
        for z in trial.members:
            before, after = float(np.linalg.norm(y - z)), float(np.linalg.norm(relaxed - z))
            room = trial.eps * max(1.0, trial.size + before)
            trial.require(
                after <= before + room,
                law,
                f"{_shown(y)} comes from {before:.6g} to {after:.6g} away from {_shown(z)}",
            )


def prints_and_compares(trial: Trial) -> None:
    K, law = trial.K, "it prints and compares as what it is"
    trial.require(
        is_dataclass(K),
        law,
        "it is no dataclass; declare it one, with frozen=True, eq=False, repr=False",
    )
    trial.require(
        type(K).__eq__ is ConvexSet.__eq__,
        law,
        "it does not compare arrays by content; declare the dataclass with eq=False",
    )
    for how, twin in (
        ("made again from its fields", type(K)(**K.fields())),
        ("copied", copy.deepcopy(K)),
    ):
        same = (
            twin == K
            and hash(K) == hash(twin)
            and repr(K) == repr(twin)
            and identity(K) == identity(twin)
        )
        trial.require(
            same, law, f"{how}, it is {twin!r} and not equal in ==, hash, repr and identity"
        )
    trial.require(object() != K, law, "it equals an object of another kind")


LAWS = (
    center_is_a_member,
    sizes_make_sense,
    nothing_is_changed,
    answers_are_members,
    same_question_same_answer,
    answers_are_best,
    warm_starts_do_no_harm,
    answers_match_the_linear_program,
    radius_bounds,
    diameter_bounds,
    tangent_projects,
    tangent_keeps_the_answer,
    dimension_is_the_rank,
    excess_tells_members,
    inner_ball_is_inside,
    answers_keep_the_dtype,
    directions_are_looked_at,
    vertices_agree,
    compiled_oracles_agree,
    tables_agree,
    projections_are_nearest,
    answers_match_the_projection,
    relaxations_come_no_farther,
    prints_and_compares,
)
"""Every law, in the order they are tried: what later laws build on comes first."""


def _farthest(trial: Trial, start: Floats, d: Floats) -> Floats:
    """A member far from `start`: climb the distance by its linear minorants."""
    z = trial.lmo(d)
    for _ in range(3):
        z = trial.lmo(trial.rounded(start - z))
    return z


def _minimum(description: LinearDescription, d: Floats) -> float | None:
    """The least <d, x> over the description, or None where the solver finds none."""
    from scipy.optimize import linprog

    flat = d.reshape(-1)
    lower, upper, A_eq, b_eq, A_ub, b_ub, lift, shift = description
    cost = flat if lift is None else lift.T @ flat
    found = linprog(cost, A_ub, b_ub, A_eq, b_eq, np.stack([lower, upper], axis=1), method="highs")
    return (
        None
        if found.status != 0
        else float(found.fun) + (0.0 if shift is None else float(flat @ shift))
    )


def _numbers(x: Array) -> Floats:
    """An array as float64 on the host."""
    return np.asarray(to_numpy(x), dtype=np.float64)


def _shown(x: Floats) -> str:
    return np.array2string(
        np.asarray(x).reshape(-1), precision=6, threshold=8, edgeitems=3, max_line_width=1000
    )
