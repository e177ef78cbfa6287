"""Laws that every convex set keeps; run them on your own with `check_set`.

    v = lmo(d) is a member, and <d, v> <= <d, z> for every member z                    oracle
    ||v - center|| <= radius,   ||v - w|| <= diameter                                  sizes
    center + inner_radius u is a member for every unit u along the affine hull         inner ball
    tangent = tangent^2 = tangent',   <d - tangent(d), z - center> = 0                 affine hull
    excess is 0 for members, positive elsewhere
    <y - project(y), z - project(y)> <= 0 for every member z                           projection
    any factors of a member beside the others of another are a member                  product
    names are different texts, one for each entry                                      names

and: structured answers agree with their dense points, and compiled oracles with both; the same
question gets the same answer, in the library and dtype it was asked in, and nothing given is
changed. Directions are random, along the axes, tied, zero, huge and tiny; the laws run in the
library and dtype of `center`, and numbers are compared up to 1e4 eps of the sizes that went into
them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tidewolf.core.arrays import norm
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
    OnPass,
    as_floats,
    check,
    format_point,
    raises,
    require,
    require_value,
    run_checks,
)
from tidewolf.testing.set_trial import SetTrial

_SMALL = 400
"""Up to how many entries `tangent` is applied to a whole basis."""
_SOLVER = 1e-6
"""What an LP solver's answer may be off, relative to the sizes in it."""


def check_set(K: ConvexSet, *, seed: int = 0, on_pass: OnPass | None = None) -> None:
    """Try every law of sets on one of them.

    Parameters
    ----------
    K : ConvexSet
        The set, such as an instance of a class of your own.
    seed : int, default 0
        Where the random directions start.
    on_pass : callable, optional
        Told the name of every law that is kept, as it is tried.

    Raises
    ------
    CheckFailed
        At the first law that is broken, with the law and the numbers.
    WrongType
        Where K is no set.

    Examples
    --------
    >>> tw.testing.check_set(tw.sets.Simplex(3))  # says nothing: every check is on_pass
    >>> checks = []
    >>> tw.testing.check_set(tw.sets.Simplex(3), on_pass=checks.append)
    >>> checks[0]
    'center is a member'
    """
    if not isinstance(K, ConvexSet):
        raise WrongType(
            f"check_set takes a set, an instance of a subclass of ConvexSet, not {K!r}."
        )
    trial = SetTrial(K, seed)
    run_checks(SET_CHECKS, trial, trial.name, on_pass)


@check("its center is a read-only member")
def center_is_a_member(trial: SetTrial) -> None:
    K = trial.K
    require(
        tuple(K.center.shape) == K.shape,
        f"the center has shape {tuple(K.center.shape)}, points have shape {K.shape}",
    )
    require(np.isfinite(trial.center).all(), f"the center is {format_point(trial.center)}")
    trial.require_member(trial.center, f"the center {format_point(trial.center)} has")
    if type(K.center) is np.ndarray:
        writeable = K.center.flags.writeable and np.shares_memory(K.center, K.center)
        require(not writeable, "the center can be written to; set center.flags.writeable = False")


@check("its sizes are finite, not negative, and fit together")
def sizes_make_sense(trial: SetTrial) -> None:
    K = trial.K
    for name in ("radius", "diameter"):
        size = getattr(K, name)
        require(math.isfinite(size) and size >= 0, f"{name} is {size}")
    inside = K.inner_radius
    require(
        inside is None or 0 <= inside <= K.radius * (1 + trial.eps),
        f"inner_radius is {inside}, radius is {K.radius:.6g}",
    )
    require(
        0 <= K.dimension <= math.prod(K.shape),
        f"dimension is {K.dimension}, points have shape {K.shape}",
    )
    require(
        K.dimension > 0 or inside in (None, 0),
        f"the set is a single point, and inner_radius is {inside}",
    )


@check("what it is given stays unchanged and is not kept")
def directions_stay_unchanged(trial: SetTrial) -> None:
    K = trial.K
    calls: dict[str, Callable[[Array], Any]] = {
        "lmo": K.lmo,
        "tangent": K.tangent,
        "infeasibility": K.infeasibility,
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
            require(
                np.array_equal(as_floats(x), before),
                f"{name} turned {format_point(before)} into {format_point(x)}",
            )
            if type(x) is np.ndarray:
                require(x.flags.writeable, f"{name} made its input read-only")
                on_pass = name in ("lmo", "project", "relax") and np.shares_memory(x, y)
                require(
                    not on_pass,
                    f"{name} answered with memory of its input; answer with a new array",
                )


@check("the oracle's answer is a member")
def answers_are_members(trial: SetTrial) -> None:
    K = trial.K
    for d, v in trial.answers:
        require(
            v.shape == K.shape,
            f"the answer to {format_point(d)} has shape {v.shape}, points have shape {K.shape}",
        )
        require(np.isfinite(v).all(), f"the answer to {format_point(d)} is {format_point(v)}")
        trial.require_member(v, f"the answer to {format_point(d)} is {format_point(v)}, with")


@check("the same direction gets the same answer")
def same_direction_same_answer(trial: SetTrial) -> None:
    for d, v in trial.answers:
        again = trial.lmo(d)
        require(
            np.array_equal(v, again),
            f"{format_point(d)} got {format_point(v)} and then {format_point(again)}",
        )


@check("no member is better than the oracle's answer")
def answers_are_best(trial: SetTrial) -> None:
    for d, v in trial.answers:
        best = min(trial.members, key=lambda z, d=d: float(np.vdot(d, z)))  # type: ignore[misc]
        gap = float(np.vdot(d, v - best))
        require(
            gap <= trial.oracle_error(d) + trial.slack(d),
            f"in direction {format_point(d)} the answer {format_point(v)} is worse than the member "
            f"{format_point(best)} by {gap:.3g}",
        )


@check("a warm start is worth its word: the same answer each time, and as good as its error says")
def warm_starts_do_no_harm(trial: SetTrial) -> None:
    warm = None
    for d, v in trial.answers:
        first, again = (trial.K.answer(trial.given(d), warm) for _ in range(2))
        same = first.vertex.key() == again.vertex.key() and first.error == again.error
        require(same, f"in direction {format_point(d)} two answers differ")
        # one of NumPy's would turn float32 into float64 where it is added
        number = type(first.error) in (float, int)
        require(
            number,
            f"its error is a {type(first.error).__name__}, not a plain number; give float(error)",
        )
        gap = float(np.vdot(d, as_floats(first.vertex.dense(trial.given(d))) - v))
        require(
            gap <= first.error + trial.slack(d),
            f"in direction {format_point(d)} it is worse than a cold answer by {gap:.3g}, error "
            f"{first.error:.3g}",
        )
        warm = first.warm


@check("the oracle is as good as a linear program over its description, and no better")
def answers_match_the_linear_program(trial: SetTrial) -> None:
    if not isinstance(trial.K, Polyhedral):
        return
    description = trial.K.description()
    for d in [*trial.normals("programs", 3), *trial.axes[:4]]:
        value, program = float(np.vdot(d, trial.lmo(d))), _minimum(description, d)
        require(
            program is not None,
            f"a linear program over the description has no solution in direction {format_point(d)}",
        )
        assert program is not None
        room = max(_SOLVER, trial.eps) * norm(d) * max(1.0, trial.size)
        require(
            program - room <= value <= program + trial.oracle_error(d) + room,
            f"in direction {format_point(d)} it reaches {value:.9g}, the program {program:.9g}",
        )


@check("no member is farther from the center than radius")
def radius_bounds(trial: SetTrial) -> None:
    K = trial.K
    far = [_farthest(trial, trial.center, d) for d in trial.normals("far", 3)]
    for z in [*trial.members, *far]:
        away = norm(z - trial.center)
        require(
            away <= K.radius + trial.eps * trial.size,
            f"{format_point(z)} is {away:.6g} away, radius is {K.radius:.6g}",
        )


@check("the center is inside the set, wherever it is not flat")
def center_is_inside(trial: SetTrial) -> None:
    for d in [*trial.normals("inside", 3), *trial.axes]:
        along = trial.tangent(d)
        if norm(along) <= trial.eps * norm(d):
            continue
        least = float(np.vdot(along, trial.lmo(trial.rounded(along))))
        most = float(np.vdot(along, trial.lmo(trial.rounded(-along))))
        at = float(np.vdot(along, trial.center))
        flat = most - least <= 10 * trial.slack(along)
        require(
            flat or at > least + 1e-9 * (most - least),
            f"along {format_point(along)} members reach from {least:.6g} to {most:.6g}, and the "
            f"center is at {at:.6g}, on the boundary",
        )


@check("moved to another dtype, its center is of that dtype")
def center_moves(trial: SetTrial) -> None:
    reference = np.zeros(1, dtype=np.float32)
    found = trial.K.to(reference).center.dtype
    require(
        found == reference.dtype,
        f"its center is {found} after to(float32): make it a cached_property, which to() moves",
    )


@check("no two members are farther apart than diameter")
def diameter_bounds(trial: SetTrial) -> None:
    K = trial.K
    for d, v in trial.answers:
        for w in (trial.lmo(-d), _farthest(trial, v, d)):
            apart = norm(v - w)
            require(
                apart <= K.diameter + trial.eps * trial.size,
                f"{format_point(v)} and {format_point(w)} are {apart:.6g} apart, diameter is "
                f"{K.diameter:.6g}",
            )


@check("tangent is an orthogonal projection")
def tangent_projects(trial: SetTrial) -> None:
    a, b = trial.normals("tangents", 2)
    Ta, Tb = trial.tangent(a), trial.tangent(b)
    room = trial.eps * (norm(a) + norm(b))
    require(
        Ta.shape == trial.K.shape,
        f"tangent answers shape {Ta.shape}, points have shape {trial.K.shape}",
    )
    linear = norm(trial.tangent(trial.rounded(2 * a - b)) - 2 * Ta + Tb)
    require(
        linear <= 3 * room,
        f"it is not linear: tangent(2a - b) differs from 2 tangent(a) - tangent(b) by {linear:.3g}",
    )
    twice = norm(trial.tangent(Ta) - Ta)
    require(twice <= room, f"it is not idempotent: applied twice it moves by another {twice:.3g}")
    skew = abs(float(np.vdot(Ta, b) - np.vdot(a, Tb)))
    require(
        skew <= room * (norm(a) + norm(b)), f"it is not symmetric: <Ta, b> - <a, Tb> = {skew:.3g}"
    )


@check(
    "members differ along the tangent space only, so that tangent(d) has the same best members as d"
)
def tangent_keeps_the_answer(trial: SetTrial) -> None:
    for d in trial.normals("across", 6):
        along, room = trial.tangent(d), trial.slack(d)
        spread = max(abs(float(np.vdot(d - along, z - trial.center))) for z in trial.members)
        require(
            spread <= room,
            f"<d - tangent(d), z> varies by {spread:.3g} over members, d = {format_point(d)}",
        )
        worse = float(np.vdot(d, trial.lmo(along) - trial.lmo(d)))
        require(
            worse <= trial.oracle_error(along) + 2 * room,
            f"the answer to tangent(d) is worse by {worse:.3g}, d = {format_point(d)}",
        )


@check("dimension is the rank of tangent")
def dimension_is_the_rank(trial: SetTrial) -> None:
    K, n = trial.K, math.prod(trial.K.shape)
    if n <= _SMALL:
        trace = sum(
            float(trial.tangent(unit.reshape(K.shape)).reshape(-1)[i])
            for i, unit in enumerate(np.eye(n))
        )
        require(
            abs(trace - K.dimension) <= 0.1, f"the rank is {trace:.6g}, dimension is {K.dimension}"
        )


@check("excess is 0 for members and positive for others")
def infeasibility_tells_members(trial: SetTrial) -> None:
    for z in trial.members:
        trial.require_member(z, f"the member {format_point(z)} has")
    for d in trial.normals("outside", 6):
        along = trial.tangent(d)
        for kind, out in (
            ("beyond the best answer to its own direction", along),
            ("off the affine hull", d - along),
        ):
            length = norm(out)
            if length > math.sqrt(trial.eps) * norm(d):
                x = (trial.lmo(along) if out is along else trial.center) - trial.size * out / length
                infeasibility = trial.infeasibility(x)
                require(
                    infeasibility > trial.allowed(x),
                    f"{format_point(x)}, {kind}, has excess {infeasibility:.3g}",
                )


@check("the ball of radius inner_radius around the center, within the affine hull, is in the set")
def inner_ball_is_inside(trial: SetTrial) -> None:
    K = trial.K
    if not K.inner_radius:
        return
    for d in [*trial.axes, *trial.normals("ball", 12)]:
        u = trial.tangent(d)
        length = norm(u)
        if length > math.sqrt(trial.eps):
            x = trial.center + K.inner_radius * u / length
            clause = f"inner_radius is {K.inner_radius:.6g}, and {format_point(x)} has"
            trial.require_member(x, clause)


@check("answers come in the library and floating dtype of the direction")
def answers_keep_the_dtype(trial: SetTrial) -> None:
    K = trial.K
    for dtype in (np.float32, np.float64):
        d = trial.normals("dtypes", 1)[0].astype(dtype)
        for name, answer in (("answer", K.answer(d).vertex.dense(d)), ("tangent", K.tangent(d))):
            found = getattr(answer, "dtype", type(answer).__name__)
            require(
                type(answer) is np.ndarray and found == dtype,
                f"{name} of a {np.dtype(dtype)} direction is {found}",
            )
        v = K.answer(d).vertex.dense(d)
        require(not v.flags.writeable, "the answer can be written to")
        require(
            float(K.infeasibility(v)) <= membership_tolerance(v, K.radius),
            f"the {v.dtype} answer has excess {K.infeasibility(v):.3g}",
        )


@check("lmo takes whole numbers and refuses what is no direction")
def directions_are_looked_at(trial: SetTrial) -> None:
    """Only where `lmo` is ours: a set that brings its own gets directions the machinery has looked
    at.
    """
    K = trial.K
    if type(K).lmo is not ConvexSet.lmo:
        return
    whole = generator(trial.seed, "check set: whole numbers").integers(-5, 6, K.shape)
    require(
        K.lmo(whole).dtype == np.float64,
        f"a direction of integers got an answer of {K.lmo(whole).dtype}",
    )
    require(
        np.array_equal(K.lmo(whole), K.lmo(whole.astype(np.float64))),
        f"{whole.tolist()} got another answer than as floats",
    )
    bad: dict[str, tuple[Any, type[Exception]]] = {
        "a NaN": (np.full(K.shape, np.nan), NotFinite),
        "an infinite entry": (np.full(K.shape, np.inf), NotFinite),
        "another shape": (np.ones((*K.shape, 2)), WrongShape),
        "text": ("up", WrongType),
    }
    for what, (direction, fitting) in bad.items():
        require(
            raises(fitting, K.lmo, direction),
            f"a direction with {what} was answered" if what != "text" else "a text was answered",
        )


@check("a structured answer agrees with its dense point")
def vertices_agree(trial: SetTrial) -> None:
    e, x = trial.normals("vertices", 2)
    room = trial.square_slack(e, x)
    for d, v in trial.answers:
        vertex = trial.K.answer(trial.given(d)).vertex
        start = trial.given(x)
        dense = as_floats(vertex.dense(start))
        gaps = {
            "lmo": np.vdot(d, dense - v) / (norm(d) or 1.0),
            "inner": vertex.inner(trial.given(e)) - np.vdot(dense, e),
            "distance2": (
                vertex.distance2(start, float(np.vdot(x, x))) - np.vdot(x - dense, x - dense)
            ),
            "blend": np.abs(as_floats(vertex.blend(start, 0.25)) - (0.75 * x + 0.25 * dense)).max(),
        }
        for name, gap in gaps.items():
            require(
                abs(float(gap)) <= room,
                f"{name} is off by {float(gap):.3g} for the answer {format_point(dense)}",
            )
        require(np.array_equal(as_floats(start), x), "blend changed the point it was given")


@check("its compiled oracle gives the vertex of `answer`")
def compiled_oracles_agree(trial: SetTrial) -> None:
    K = trial.K
    if not isinstance(K, Compiled):
        return
    for d in trial.directions:
        vertex, rebuilt = K.answer(d).vertex, K.minimiser(d)
        require(
            type(vertex) is Sparse and vertex.key() == rebuilt.key(),
            f"in direction {format_point(d)} it is {format_point(rebuilt.dense(d))}, and `answer` "
            f"gives {format_point(vertex.dense(d))}",
        )


def lengths(gram: Floats) -> Floats:
    """|a_i - a_j|^2 from a Gram matrix, whatever its origin."""
    squares = np.diag(gram)
    return np.asarray(squares[:, None] - 2.0 * gram + squares[None, :])


@check("a table of answers agrees with their dense points")
def tables_agree(trial: SetTrial) -> None:
    e, reference = trial.normals("tables", 1)[0], trial.given(trial.center)
    vertices = [
        trial.K.atom(trial.K.center),
        *(trial.K.answer(trial.given(d)).vertex for d, _ in trial.answers[:12]),
    ]
    table = vertices[1].table()
    for row, vertex in enumerate(vertices):
        table = table.append(vertex, row)
    count = len(vertices)
    points = np.stack([as_floats(vertex.dense(reference)).reshape(-1) for vertex in vertices])
    weights = generator(trial.seed, "check set: weights").standard_normal(count)
    gaps = {
        "atom": points[0] - trial.center.reshape(-1),
        "inner": table.inner(trial.given(e), count) - points @ e.reshape(-1),
        "combine": as_floats(table.combine(weights, reference)).reshape(-1) - weights @ points,
        "gram": lengths(table.gram[:count, :count]) - lengths(points @ points.T),
    }
    room = trial.square_slack(e, weights)
    for name, gap in gaps.items():
        off = float(np.abs(gap).max())
        require(off <= room, f"{name} is off by {off:.3g}")
    for vertex in vertices:
        found = table.find(vertex, len(vertices))
        same = found is not None and np.array_equal(
            vertices[found].dense(reference), vertex.dense(reference)
        )
        require(same, f"find gives row {found} for a vertex that was appended")


@check("project gives the nearest member")
def projections_are_nearest(trial: SetTrial) -> None:
    K = trial.K
    if not isinstance(K, Projectable):
        return
    for z in trial.members[-6:]:
        moved = norm(as_floats(K.project(trial.given(z))) - z)
        require(
            moved <= trial.eps * max(1.0, trial.size),
            f"the member {format_point(z)} is moved by {moved:.3g}",
        )
    for d in trial.normals("projections", 4):
        for far in (0.01, 1.0, 100.0, 1e8):
            y = trial.rounded(trial.lmo(d) - far * trial.size * d)
            p = as_floats(K.project(trial.given(y)))
            projected = f"{format_point(y)} is projected on {format_point(p)}"
            trial.require_member(p, f"{projected}, with")
            gap = float(np.vdot(y - p, trial.lmo(p - y) - p))
            require(
                gap <= trial.eps * max(1.0, trial.size) * max(1.0, norm(y - p)),
                f"{projected}, and a nearer member exists (gap {gap:.3g})",
            )


@check("no projection of a far point is better than the oracle's answer")
def answers_match_the_projection(trial: SetTrial) -> None:
    if not isinstance(trial.K, Projectable):
        return
    for d, v in trial.answers:
        if np.any(d):
            far = trial.center - 100 * trial.size * (d / norm(d))
            p = as_floats(trial.K.project(trial.given(far)))
            gap = float(np.vdot(d, v - p))
            require(
                gap <= trial.oracle_error(d) + trial.slack(d),
                f"in direction {format_point(d)} the answer {format_point(v)} is worse than "
                f"{format_point(p)} by {gap:.3g}",
            )


@check("relax is a projection that keeps members and brings no point farther from any member")
def relaxations_come_no_farther(trial: SetTrial) -> None:
    K = trial.K
    if not isinstance(K, Relaxable):
        return
    around = [trial.center + trial.size * d for d in trial.normals("relaxations", 4)]
    for y in [*trial.members[-3:], *around]:
        given = trial.given(y)
        answer = K.relax(given)
        same = type(answer) is type(given) and answer.dtype == given.dtype
        require(
            same,
            f"a {given.dtype} point is answered as a {type(answer).__name__} of {answer.dtype}",
        )
        relaxed = as_floats(answer)
        again = norm(as_floats(K.relax(trial.given(relaxed))) - relaxed)
        require(
            again <= trial.eps * max(1.0, trial.size),
            f"relaxed twice, {format_point(y)} moves by another {again:.3g}",
        )
        for z in trial.members:
            before, after = norm(y - z), norm(relaxed - z)
            room = trial.eps * max(1.0, trial.size + before)
            require(
                after <= before + room,
                f"{format_point(y)} comes from {before:.6g} to {after:.6g} away from "
                f"{format_point(z)}",
            )


@check("it is the product of its factors, and their sizes are those of the set")
def factors_make_the_set(trial: SetTrial) -> None:
    K, parts, n = trial.K, trial.K.factors, math.prod(trial.K.shape)
    if parts is None:
        return
    starts = np.asarray(parts.starts)
    require(
        starts.dtype == np.int64 and starts[0] == 0 and np.all(np.diff(starts, append=n) > 0),
        f"its factors start at {format_point(starts)}: 64-bit whole numbers from 0, ascending, "
        f"below {n} are wanted",
    )
    owner = np.repeat(np.arange(len(starts)), np.diff(starts, append=n))

    def sizes(x: Floats) -> Floats:
        unit = trial.size
        return unit * np.sqrt(np.add.reduceat((x.reshape(-1) / unit) ** 2, starts))

    room = trial.eps * trial.size
    for name, whole, told in (
        ("radii", K.radius, parts.radii),
        ("diameters", K.diameter, parts.diameters),
    ):
        fits = len(told) == len(starts) and np.min(told) >= 0
        require(fits, f"its factors have the {name} {format_point(told)}")
        require(
            abs(norm(told) - whole) <= room,
            f"the {name} of its factors make {norm(told):.6g}, and the set's is {whole:.6g}",
        )
    require(
        not parts.exact or isinstance(K, Projectable),
        "its factors are said to have an exact projection, and it has no `project`",
    )
    rng = generator(trial.seed, "check set: factors")
    for (d, v), (_, w) in itertools.pairwise(trial.answers):
        for name, found, most in (
            ("away from the center", sizes(v - trial.center), parts.radii),
            ("apart", sizes(v - w), parts.diameters),
        ):
            b = int(np.argmax(found - most))
            require(
                found[b] <= most[b] + room,
                f"factor {b} of two members is {found[b]:.6g} {name}; {most[b]:.6g} is the most "
                "it says",
            )
        chosen = (rng.random(len(starts)) < 0.5)[owner].reshape(K.shape)
        mixed = np.where(chosen, v, w)
        trial.require_member(mixed, f"{format_point(mixed)}, of factors of two members, has")
        apart = np.where(chosen, trial.tangent(d), 0.0) - trial.tangent(np.where(chosen, d, 0.0))
        require(
            norm(apart) <= trial.eps * norm(d),
            f"tangent of some factors of {format_point(d)} differs from that of all of them by "
            f"{norm(apart):.3g}",
        )


@check("its names, where entries have some, are different texts, one for each entry")
def names_name_entries(trial: SetTrial) -> None:
    K, entries = trial.K, math.prod(trial.K.shape)
    names = K.names
    if names is None:
        return
    texts = isinstance(names, tuple) and all(isinstance(name, str) for name in names)
    require(texts, f"its names are {names!r}, where a tuple of texts is due")
    require(len(names) == entries, f"it has {len(names)} names for {entries} entries")
    require(len(set(names)) == entries, f"two of its entries are called the same: {names!r}")
    for i, name in enumerate(names):
        found = np.asarray(K.places[name]).tolist()
        require(found == [i], f"{name!r}, the name of entry {i}, stands for {found}")


@check("it prints and compares as what it is")
def set_prints_and_compares(trial: SetTrial) -> None:
    require_value(trial.K, ConvexSet)


SET_CHECKS = (
    center_is_a_member,
    sizes_make_sense,
    directions_stay_unchanged,
    answers_are_members,
    same_direction_same_answer,
    answers_are_best,
    warm_starts_do_no_harm,
    answers_match_the_linear_program,
    radius_bounds,
    center_is_inside,
    diameter_bounds,
    tangent_projects,
    tangent_keeps_the_answer,
    dimension_is_the_rank,
    infeasibility_tells_members,
    inner_ball_is_inside,
    answers_keep_the_dtype,
    directions_are_looked_at,
    vertices_agree,
    compiled_oracles_agree,
    tables_agree,
    projections_are_nearest,
    answers_match_the_projection,
    relaxations_come_no_farther,
    factors_make_the_set,
    names_name_entries,
    set_prints_and_compares,
    center_moves,
)
"""Every law, in the order they are tried: what later laws build on comes first."""


def _farthest(trial: SetTrial, start: Floats, d: Floats) -> Floats:
    """A member far from `start`: climb the distance by its linear minorants."""
    z = trial.lmo(d)
    for _ in range(3):
        z = trial.lmo(trial.rounded(start - z))
    return z


def _minimum(description: LinearDescription, d: Floats) -> float | None:
    """The least <d, x> over the description, or None where the solver finds none."""
    from scipy.optimize import linprog

    of, cost = description, d.reshape(-1)
    bounds = np.stack([of.lower, of.upper], axis=1)
    shift = 0.0 if of.shift is None else float(cost @ of.shift)
    cost = cost if of.lift is None else of.lift.T @ cost
    found = linprog(cost, of.A_ub, of.b_ub, of.A_eq, of.b_eq, bounds, method="highs")
    return float(found.fun) + shift if found.status == 0 else None
