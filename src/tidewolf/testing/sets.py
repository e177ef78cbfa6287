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

import itertools
import math
import sys
from dataclasses import dataclass, is_dataclass
from functools import cached_property

import numpy as np

from tidewolf.core import randomness
from tidewolf.core.arguments import as_kind
from tidewolf.core.arrays import eps_of, like, norm
from tidewolf.core.types import Array, Floats
from tidewolf.core.vertices import Sparse
from tidewolf.sets import base
from tidewolf.testing.checks import OnPass, as_floats, format_point, require, run_checks

# Along how many axes of a large set directions are tried.
_AXES = 12
# Up to how many entries `tangent` is applied to a whole basis.
_SMALL = 400
# How far an LP solver's answer may be off, relative to the sizes in it.
_SOLVER = 1e-6


def check_set(K: base.ConvexSet, *, seed: int = 0, on_pass: OnPass = None) -> None:
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
    as_kind(K, base.ConvexSet, "check_set takes an instance of a subclass of ConvexSet")
    run_checks(SetChecks(K, seed), repr(K) if is_dataclass(K) else type(K).__name__, on_pass)


@dataclass(frozen=True)
class SetTrial:
    """A set, the directions it is tested in, and its answers; numbers are float64 on the host,
    rounded to the set's dtype.
    """

    K: base.ConvexSet
    seed: int

    def given(self, x: Floats) -> Array:
        return like(x.copy(), self.K.center)

    def rounded(self, x: Floats) -> Floats:
        return as_floats(self.given(x))

    def lmo(self, d: Floats) -> Floats:
        return as_floats(self.K.lmo(self.given(d)))

    def tangent(self, d: Floats) -> Floats:
        return as_floats(self.K.tangent(self.given(d)))

    def oracle_error(self, d: Floats) -> float:
        return self.K.answer(self.given(d)).error

    def slack(self, d: Floats) -> float:
        return self.eps * norm(d) * self.size

    def square_slack(self, a: Floats, b: Floats) -> float:
        """The rounding error allowed in products of members with one another and with a and b."""
        return self.eps * max(1.0, self.size) ** 2 * max(1.0, norm(a) + norm(b))

    def require_member(self, x: Floats, what: str) -> None:
        require.member(self.K, self.given(x), what)

    def require_no_worse(self, d: Floats, v: Floats, other: Floats) -> None:
        """Fail the check if the oracle's answer v to d is worse than another member."""
        gap, at = float(np.vdot(d, v - other)), f"in direction {format_point(d)}"
        worse = f"{at}, how much worse {format_point(v)} is than the member {format_point(other)}"
        require.at_most(gap, self.oracle_error(d) + self.slack(d), worse)

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
        return max(self.K.radius, norm(self.center)) or 1.0

    def rng(self, purpose: str) -> np.random.Generator:
        return randomness.generator(self.seed, f"check set: {purpose}")

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
        return [(d, self.lmo(d)) for d in self.directions]

    @cached_property
    def members(self) -> list[Floats]:
        corners = np.stack([self.center, *(v for _, v in self.answers)])
        rng, even = self.rng("mixtures"), np.full(len(corners), 0.1)
        mixtures = [np.tensordot(rng.dirichlet(even), corners, 1) for _ in range(12)]
        return [self.rounded(x) for x in (*corners, *mixtures)]


def lengths(gram: Floats) -> Floats:
    """|a_i - a_j|^2 from a Gram matrix, whatever its origin."""
    squares = np.diag(gram)
    return np.asarray(squares[:, None] - 2.0 * gram + squares[None, :])


class SetChecks(SetTrial):
    def center_is_a_member(self) -> None:
        """Its center is a read-only member."""
        center = self.K.center
        self.require_member(self.center, "the center")
        if np.shares_memory(as_floats(center), as_floats(self.K.center)):
            require.locked(center, "the center")

    def sizes_make_sense(self) -> None:
        """Its sizes are finite, not negative, and fit together."""
        K, n = self.K, math.prod(self.K.shape)
        most, inner = sys.float_info.max, K.radius * (1 + self.eps) if K.dimension else 0.0
        sizes = {"radius": most, "diameter": most, "dimension": n, "inner_radius": inner}
        for name, largest in sizes.items():
            size = getattr(K, name) or 0.0
            require(0 <= size <= largest, f"{name} is {size}, expected 0 to {largest:.6g}")

    def directions_stay_unchanged(self) -> None:
        """What it is given stays unchanged and is not kept."""
        more = {"project": base.Projectable, "relax": base.Relaxable}
        able = [name for name, kind in more.items() if isinstance(self.K, kind)]
        names = ("lmo", "tangent", "infeasibility", "atom", *able)
        for d, name in itertools.product(self.normals("inputs", 2), names):
            before = self.center if name == "atom" else d
            x = self.given(before)
            y = getattr(self.K, name)(x)
            same = np.array_equal(as_floats(x), before)
            require(same, f"{name} turned {format_point(before)} into {format_point(x)}")
            if type(x) is np.ndarray:
                require(x.flags.writeable, f"{name} made its input read-only")
                shared = name in ("lmo", "project", "relax") and np.shares_memory(x, y)
                require(not shared, f"{name} returned memory of its input; return a new array")

    def answers_are_members(self) -> None:
        """The oracle's answer is a member, and the same direction gets the same answer."""
        for d, v in self.answers:
            self.require_member(v, f"the answer to {format_point(d)}")
            same = np.array_equal(v, self.lmo(d))
            require(same, f"{format_point(d)} got {format_point(v)} and then another answer")

    def answers_are_best(self) -> None:
        """No member is better than the oracle's answer."""
        members = np.stack(self.members)
        for d, v in self.answers:
            products = members.reshape(len(members), -1) @ d.reshape(-1)
            self.require_no_worse(d, v, members[np.argmin(products)])

    def warm_starts_do_no_harm(self) -> None:
        """A warm start gives the same answer each time, as good as its stated error."""
        warm = None
        for d, v in self.answers:
            at = f"in direction {format_point(d)}"
            first, again = (self.K.answer(self.given(d), warm) for _ in range(2))
            same = first.vertex.key() == again.vertex.key() and first.error == again.error
            require(same, f"{at} two answers differ")
            # a number of NumPy's would turn float32 into float64 when it is added
            kind = type(first.error)
            require(kind in (float, int), f"its error is a {kind.__name__}; return float(error)")
            gap = float(np.vdot(d, as_floats(first.vertex.dense(self.given(d))) - v))
            require.at_most(gap, first.error + self.slack(d), f"{at}, the gap to a cold answer")
            warm = first.warm

    def answers_match_the_linear_program(self) -> None:
        """The oracle is as good as a linear program over its description, and no better."""
        from scipy.optimize import linprog

        if not isinstance(self.K, base.Polyhedral):
            return
        of = self.K.description()
        rows, bounds = (of.A_ub, of.b_ub, of.A_eq, of.b_eq), np.stack([of.lower, of.upper], axis=1)
        for d in [*self.normals("programs", 3), *self.axes[:4]]:
            value, cost, at = float(np.vdot(d, self.lmo(d))), d.reshape(-1), format_point(d)
            shift = 0.0 if of.shift is None else float(cost @ of.shift)
            found = linprog(cost if of.lift is None else of.lift.T @ cost, *rows, bounds)
            program = float(found.fun) + shift if found.status == 0 else math.nan
            room = max(_SOLVER, self.eps) * norm(d) * max(1.0, self.size)
            fits = program - room <= value <= program + self.oracle_error(d) + room
            require(fits, f"in direction {at} it reaches {value:.9g}, the program {program:.9g}")

    def sizes_bound_members(self) -> None:
        """No member is farther than radius from the center, nor than diameter from another."""
        far = [self.farthest(self.center, d) for d in self.normals("far", 3)]
        apart = [(v, self.lmo(-d)) for d, v in self.answers]
        apart += [(v, self.farthest(v, d)) for d, v in self.answers[:12]]
        away = [(self.center, z) for z in (*self.members, *far)]
        for name, pairs in (("radius", away), ("diameter", apart)):
            size = getattr(self.K, name)
            a, b = max(pairs, key=lambda ends: norm(ends[0] - ends[1]))
            what = f"{name} is {size:.6g}; the distance of {format_point(a)} and {format_point(b)}"
            require.at_most(norm(a - b), size + self.eps * self.size, what)

    def center_is_inside(self) -> None:
        """The center is inside the set in every direction in which the set is not flat."""
        for d in [*self.normals("inside", 3), *self.axes]:
            along = self.tangent(d)
            if norm(along) > self.eps * norm(d):
                ends = self.lmo(self.rounded(along)), self.lmo(self.rounded(-along))
                least, most, at = (float(np.vdot(along, z)) for z in (*ends, self.center))
                flat = most - least <= 10 * self.slack(along)
                inside = flat or at > least + 1e-9 * (most - least)
                reach = f"along {format_point(along)} members reach from {least:.6g} to {most:.6g}"
                require(inside, f"{reach}, and the center is at {at:.6g}, on the boundary")

    def tangent_projects(self) -> None:
        """tangent is an orthogonal projection, of rank `dimension`."""
        K, n, T, (a, b) = self.K, math.prod(self.K.shape), self.tangent, self.normals("tangents", 2)
        Ta, Tb, size = T(a), T(b), norm(a) + norm(b)
        require(Ta.shape == K.shape, f"it has shape {Ta.shape}, points have shape {K.shape}")
        skew, sums = abs(float(np.vdot(Ta, b) - np.vdot(a, Tb))), T(self.rounded(2 * a - b))
        for law, off, most in (
            ("linear: |T(2a - b) - 2 T(a) + T(b)|", norm(sums - 2 * Ta + Tb), 3),
            ("idempotent: |T(T(a)) - T(a)|", norm(T(Ta) - Ta), 1),
            ("symmetric: |<Ta, b> - <a, Tb>|", skew, size),
        ):
            require.at_most(off, most * self.eps * size, f"it is not {law}")
        if n <= _SMALL:
            rank = sum(T(u.reshape(K.shape)).reshape(-1)[i] for i, u in enumerate(np.eye(n)))
            require.close(rank, K.dimension, 0.1, f"dimension is {K.dimension}, and the rank")

    def tangent_keeps_the_answer(self) -> None:
        """Members differ along the tangent space only: tangent(d) has the best members of d."""
        for d in self.normals("across", 6):
            along, room, of = self.tangent(d), self.slack(d), f"for d = {format_point(d)}"
            spread = max(abs(float(np.vdot(d - along, z - self.center))) for z in self.members)
            require.at_most(spread, room, f"{of}, the range of <d - tangent(d), z> over members")
            worse = float(np.vdot(d, self.lmo(along) - self.lmo(d)))
            error = self.oracle_error(along)
            require.at_most(worse, error + 2 * room, f"{of}, the gap of the answer to tangent(d)")

    def infeasibility_tells_members(self) -> None:
        """infeasibility is 0 for members and positive for others."""
        K = self.K
        for z in self.members:
            self.require_member(z, "the member")
        for d in self.normals("outside", 6):
            along = self.tangent(d)
            beyond, off_hull = (self.lmo(along), along), (self.center, d - along)
            for kind, (start, out) in {"beyond": beyond, "off the affine hull": off_hull}.items():
                if norm(out) > math.sqrt(self.eps) * norm(d):
                    x = self.given(start - self.size * out / norm(out))
                    off = float(K.infeasibility(x))
                    outside = off > base.membership_tolerance(x, K.radius)
                    require(outside, f"{format_point(x)}, {kind}, has infeasibility {off:.3g}")

    def inner_ball_is_inside(self) -> None:
        """The ball of inner_radius around the center, within the affine hull, is in the set."""
        inside = self.K.inner_radius or 0.0
        for d in [*self.axes, *self.normals("ball", 12)] if inside else []:
            if norm(u := self.tangent(d)) > math.sqrt(self.eps):
                x = self.center + inside * u / norm(u)
                self.require_member(x, f"inner_radius is {inside:.6g}, and a point of the ball")

    def answers_keep_the_dtype(self) -> None:
        """Answers come in the library and dtype of the direction."""
        K = self.K
        for dtype in (np.float32, np.float64):
            d = self.normals("dtypes", 1)[0].astype(dtype)
            v, of = K.answer(d).vertex.dense(d), f"of a {d.dtype} direction"
            require.array(v, K.shape, d, f"the answer {of}")
            require.array(K.tangent(d), K.shape, d, f"tangent {of}")
            require.locked(v, "the answer")
            require.member(K, v, f"the answer {of}")

    def vertices_agree(self) -> None:
        """A structured answer, and that of a compiled oracle, agree with the dense point."""
        K, (e, x) = self.K, self.normals("vertices", 2)
        for d, v in self.answers:
            vertex, start = K.answer(self.given(d)).vertex, self.given(x)
            dense = as_floats(vertex.dense(start))
            square = vertex.distance2(start, float(np.vdot(x, x)))
            for name, gap in (
                ("lmo", np.vdot(d, dense - v) / (norm(d) or 1.0)),
                ("inner", vertex.inner(self.given(e)) - np.vdot(dense, e)),
                ("distance2", square - np.vdot(x - dense, x - dense)),
                ("blend", as_floats(vertex.blend(start, 0.25)) - (0.75 * x + 0.25 * dense)),
            ):
                what = f"for the answer {format_point(dense)}, {name}"
                require.close(gap, 0.0, self.square_slack(e, x), what)
            require(np.array_equal(as_floats(start), x), "blend changed the point it was given")
            if isinstance(K, base.Compiled):
                same = type(vertex) is Sparse and vertex.key() == K.minimiser(d).key()
                require(same, f"the compiled oracle and `answer` differ for {format_point(d)}")

    def tables_agree(self) -> None:
        """A table of answers agrees with their dense points."""
        K, e, reference = self.K, self.normals("tables", 1)[0], self.given(self.center)
        vertices = [K.answer(self.given(d)).vertex for d, _ in self.answers[:12]]
        table, vertices = vertices[0].table(), [K.atom(K.center), *vertices]
        for row, vertex in enumerate(vertices):
            table = table.append(vertex, row)
        points = np.stack([as_floats(vertex.dense(reference)).reshape(-1) for vertex in vertices])
        count, weights = len(vertices), self.rng("weights").standard_normal(len(vertices))
        combined = as_floats(table.combine(weights, reference))
        for name, gap in (
            ("atom", points[0] - self.center.reshape(-1)),
            ("inner", table.inner(self.given(e), count) - points @ e.reshape(-1)),
            ("combine", combined.reshape(-1) - weights @ points),
            ("gram", lengths(table.gram[:count, :count]) - lengths(points @ points.T)),
        ):
            require.close(gap, 0.0, self.square_slack(e, weights), name)

    def projections_are_nearest(self) -> None:
        """project gives the nearest member, and that of a far point does not beat the oracle."""
        K, room = self.K, self.eps * max(1.0, self.size)
        if not isinstance(K, base.Projectable):
            return
        for z in self.members[-6:]:
            moved = norm(as_floats(K.project(self.given(z))) - z)
            require.at_most(moved, room, f"the step from the member {format_point(z)}")
        for d, far in itertools.product(self.normals("projections", 4), (0.01, 1.0, 100.0, 1e8)):
            y = self.rounded(self.lmo(d) - far * self.size * d)
            p = as_floats(K.project(self.given(y)))
            projected = f"the projection {format_point(p)} of {format_point(y)}"
            self.require_member(p, projected)
            gap, most = float(np.vdot(y - p, self.lmo(p - y) - p)), room * max(1.0, norm(y - p))
            require.at_most(gap, most, f"a member is nearer than {projected}; the gap")
        for d, v in self.answers:
            y = self.center - 100 * self.size * d / (norm(d) or 1.0)
            self.require_no_worse(d, v, as_floats(K.project(self.given(y))))

    def relaxations_come_no_farther(self) -> None:
        """relax is a projection that keeps members and brings no point farther from any member."""
        K = self.K
        if not isinstance(K, base.Relaxable):
            return
        around = [self.center + self.size * d for d in self.normals("relaxations", 4)]
        for y in [*self.members[-3:], *around]:
            answer, of = K.relax(self.given(y)), f"of {format_point(y)}"
            require.array(answer, K.shape, self.given(y), "the relaxed point")
            relaxed, room = as_floats(answer), self.eps * max(1.0, self.size)
            again = norm(as_floats(K.relax(self.given(relaxed))) - relaxed)
            require.at_most(again, room, f"the second step {of}, relaxed twice,")
            rise = [norm(relaxed - z) - (1 + self.eps) * norm(y - z) for z in self.members]
            farther = f"the distance {of}, once relaxed, from a member rises, and that by how much"
            require.at_most(max(rise), room, farther)

    def factors_make_the_set(self) -> None:
        """It is the product of its factors, and their sizes are those of the set."""
        K, parts, n = self.K, self.K.factors, math.prod(self.K.shape)
        if parts is None:
            return
        starts, room = np.asarray(parts.starts), self.eps * self.size
        counts = np.diff(starts, append=n)
        rise = starts.dtype == np.int64 and starts[0] == 0 and np.all(counts > 0)
        require(rise, f"its factors start at {starts}, expected int64 from 0, rising, below {n}")
        for whole, each in ((K.radius, parts.radii), (K.diameter, parts.diameters)):
            fits = len(each) == len(starts) and np.min(each) >= 0
            require(fits, f"its factors have the radii or diameters {format_point(each)}")
            require.close(norm(each), whole, room, "the norm of the radii or diameters")
        exact = not parts.exact or isinstance(K, base.Projectable)
        require(exact, "its factors have an exact projection, and the set has no `project`")

        def sizes(x: Floats) -> Floats:
            return self.size * np.sqrt(np.add.reduceat((x.reshape(-1) / self.size) ** 2, starts))

        rng = self.rng("factors")
        for (d, v), (_, w) in itertools.pairwise(self.answers):
            away = float((sizes(v - self.center) - parts.radii).max())
            apart = float((sizes(v - w) - parts.diameters).max())
            require.at_most(max(away, apart), room, "how far a factor is above its size")
            chosen = np.repeat(rng.random(len(starts)) < 0.5, counts).reshape(K.shape)
            self.require_member(np.where(chosen, v, w), "a point of factors of two members")
            some = self.tangent(np.where(chosen, d, 0.0)) - np.where(chosen, self.tangent(d), 0.0)
            require.at_most(norm(some), self.eps * norm(d), "the error in tangent of some factors")

    def names_name_entries(self) -> None:
        """Its names, if it has any, are different texts, one for each entry."""
        names, entries = self.K.names, math.prod(self.K.shape)
        if names is not None:
            fits = isinstance(names, tuple) and len(names) == len(set(names)) == entries
            fits = fits and all(isinstance(name, str) for name in names)
            require(fits, f"expected a tuple of {entries} different texts, not {names!r}")
            places = [np.asarray(self.K.places[name]).tolist() for name in names]
            require(
                places == [[i] for i in range(entries)], f"the places of its names are {places}"
            )

    def set_prints_and_compares(self) -> None:
        """It prints its name, equals a set of the same settings, and moves to another dtype."""
        K, reference = self.K, np.zeros(1, dtype=np.float32)
        require.value(K, base.ConvexSet)
        moved = "after to(float32), which moves cached properties, the center"
        require.array(K.to(reference).center, K.shape, reference, moved)
