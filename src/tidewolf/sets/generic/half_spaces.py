"""The half-spaces of a polytope: rows, right-hand sides and bounds, scaled to length 1, and refused
if the polytope would be empty or unbounded.

    G x <= h,  E x = f,        bounds among the inequalities

Empty: the least s with G x <= h + s and |E x - f| <= s is above 0, and rows with positive
multipliers cannot all hold (Farkas). Unbounded: there is a ray r, G r <= 0 and E r = 0. One program
finds one that leaves some inequality, max sum t with G r + t <= 0, 0 <= t <= 1; rays that leave
none are directions across all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tidewolf.core.arguments import shown
from tidewolf.core.arrays import frozen, require_no_mask, to_numpy
from tidewolf.core.errors import EmptySet, InvalidInput, NotFinite, WrongShape, WrongType
from tidewolf.core.settings import Check, Numbers
from tidewolf.core.types import Floats
from tidewolf.sets.generic.linear_solver import LinearProgram

FLAT = 1e-9
"""Of the set's size: what is thinner has no inside."""
_COUNTS = 1e-6
"""Of the largest multiplier: rows with smaller ones are not named."""


class HalfSpaces(NamedTuple):
    """G x <= h and E x = f, rows of length 1; the first `general` of G are no bounds; names of the
    rows of G and then of E.
    """

    G: Floats
    h: Floats
    E: Floats
    f: Floats
    general: int
    names: tuple[str, ...]


@dataclass(frozen=True)
class DoubleNumbers(Numbers):
    """An array of finite numbers, or a sparse matrix of them, kept dense in double precision."""

    def __call__(self, value: Any, what: str) -> Floats:
        from scipy.sparse import issparse

        given = super().__call__(value.toarray() if issparse(value) else value, what)
        return frozen(to_numpy(given).astype(np.float64))


@dataclass(frozen=True)
class BoundPairs(Check):
    """Pairs (lower, upper) for all entries or for each, infinite where there is no bound."""

    words: ClassVar[str] = "a pair [lower, upper], a list of such pairs, or the name of a table"

    def __call__(self, value: Any, what: str) -> Floats:
        require_no_mask(value, what)
        try:
            given = np.array(value, dtype=object)
            pairs = given.astype(np.float64)  # None becomes NaN
        except (TypeError, ValueError, OverflowError):
            raise WrongType(
                f"{what} must be pairs (lower, upper) of numbers, with None for no bound, not "
                f"{shown(value)}."
            ) from None
        if any(
            bound is not None and np.isnan(number)
            for bound, number in zip(given.flat, pairs.flat, strict=True)
        ):
            raise NotFinite(f"{what} hold a NaN; a bound is a number, or None for no bound.")
        if pairs.ndim not in (1, 2) or pairs.shape[-1] != 2 or len(pairs) == 0:
            raise WrongShape(f"{what} must be pairs (lower, upper), not of shape {pairs.shape}.")
        missing = np.isnan(pairs)
        pairs[missing] = np.broadcast_to([-np.inf, np.inf], pairs.shape)[missing]
        return pairs

    def read(self, value: Any) -> Any:
        return Numbers().read(value) if isinstance(value, str | list) else None


def require_pairs(A: Floats | None, b: Floats | None, name: str) -> None:
    """Refuse a matrix without its right-hand side, or one of another height."""
    if A is None and b is None:
        return
    if A is None or b is None:
        missing, other = (f"A_{name}", f"b_{name}") if A is None else (f"b_{name}", f"A_{name}")
        raise InvalidInput(
            f"A polytope got {other} without {missing}; give both or neither.", setting=other
        )
    if A.ndim != 2 or A.shape[1] == 0 or b.shape != A.shape[:1]:
        raise WrongShape(
            f"A_{name} has shape {A.shape} and b_{name} {b.shape}; they must be (p, n) and (p,), "
            "one entry of b for each row.",
            setting=f"A_{name}",
        )


def bounds_of_each(pairs: Floats, n: int | None) -> Floats:
    """A pair for each of n entries; n None is as many as are given."""
    if pairs.shape == (2,) and n is not None:
        pairs = np.tile(pairs, (n, 1))
    if pairs.ndim != 2:
        raise WrongShape(
            f"The bounds have shape {pairs.shape}; give a pair (lower, upper) for each entry, or "
            "one pair for all beside rows.",
            setting="bounds",
        )
    lower, upper = pairs.T
    crossed = np.flatnonzero((lower > upper) | (lower == np.inf) | (upper == -np.inf))
    if len(crossed):
        j = crossed[0]
        raise EmptySet(
            f"The polytope is empty: entry {j} has the lower bound {lower[j]:g} and the upper "
            f"bound {upper[j]:g}.",
            setting="bounds",
        )
    return frozen(pairs)


def half_spaces_of(
    A_ub: Floats | None,
    b_ub: Floats | None,
    A_eq: Floats | None,
    b_eq: Floats | None,
    bounds: Floats | None,
) -> HalfSpaces:
    """All of them as rows of length 1; rows of zeros are left out where they are true, else
    refused.
    """
    widths = {
        name: part.shape[1] for name, part in (("A_ub", A_ub), ("A_eq", A_eq)) if part is not None
    }
    if bounds is not None:
        widths["bounds"] = len(bounds)
    if not widths:
        raise InvalidInput(
            "A polytope needs inequalities (A_ub, b_ub), equations (A_eq, b_eq) or bounds; none "
            "was given."
        )
    if len(set(widths.values())) > 1:
        told = ", ".join(f"{name} of {width}" for name, width in widths.items())
        raise WrongShape(
            "All parts of a polytope speak of the same entries; these speak of different numbers: "
            f"{told}."
        )
    n = next(iter(widths.values()))
    G, h, g_names = _normed(A_ub, b_ub, n, "A_ub")
    E, f, e_names = _normed(A_eq, b_eq, n, "A_eq")
    general = len(h)
    if bounds is not None:
        for sign, side, name in ((-1.0, 0, "lower"), (1.0, 1, "upper")):
            there = np.flatnonzero(np.isfinite(bounds[:, side]))
            G, h = (
                np.vstack([G, sign * np.eye(n)[there]]),
                np.concatenate([h, sign * bounds[there, side]]),
            )
            g_names += [f"the {name} bound of entry {j}" for j in there]
    return HalfSpaces(G, h, E, f, general, (*g_names, *e_names))


def _normed(
    A: Floats | None, b: Floats | None, n: int, name: str
) -> tuple[Floats, Floats, list[str]]:
    if A is None or b is None:
        return np.zeros((0, n)), np.zeros(0), []
    largest = np.max(np.abs(A), axis=1, initial=0.0)
    sizes = largest * np.linalg.norm(A / np.where(largest > 0, largest, 1.0)[:, None], axis=1)
    for i in np.flatnonzero(sizes == 0.0):
        if b[i] < 0.0 or (name == "A_eq" and b[i] != 0.0):
            raise EmptySet(
                f"The polytope is empty: row {i} of {name} is all zeros and asks that 0 be "
                f"{'' if name == 'A_eq' else 'at most '}{b[i]:g}."
            )
    kept = np.flatnonzero(sizes)
    with np.errstate(over="ignore"):
        rows, sides = A[kept] / sizes[kept, None], b[kept] / sizes[kept]
    for i in np.flatnonzero(~np.isfinite(sides)):
        raise InvalidInput(
            f"Row {kept[i]} of {name} is {sizes[kept[i]]:g} long beside a right side of "
            f"{b[kept[i]]:g}: rescale it."
        )
    return rows, sides, [f"row {i} of {name}" for i in kept]


def require_nonempty(rows: HalfSpaces, unit: float) -> None:
    """Refuse rows without a common point, of size `unit`, naming those that contradict one
    another.
    """
    n, names = rows.G.shape[1], rows.names
    A = np.vstack([rows.G, rows.E, -rows.E])
    b = np.concatenate([rows.h, rows.f, -rows.f]) / unit
    free = np.full(n + 1, np.inf)
    apart = LinearProgram(
        np.column_stack([A, -np.ones(len(A))]), b, np.zeros((0, n + 1)), np.zeros(0), -free, free
    )
    found = apart.solve_cold(np.append(np.zeros(n), 1.0))
    if found is None or found.x[n] <= 0.0:
        return
    weights = -found.multipliers
    named = [
        (names + names[len(rows.h) :])[i] for i in np.flatnonzero(weights > _COUNTS * weights.max())
    ]
    raise EmptySet(
        f"The polytope is empty: {_listed(list(dict.fromkeys(named)))} cannot all hold; "
        f"every point is {unit * found.x[n]:.3g} or more away from what one of them asks."
    )


def require_bounded(rows: HalfSpaces) -> None:
    """Refuse rows along which one can go on for ever, naming where that leads."""
    G, E = rows.G, rows.E
    p, n = G.shape
    lower, upper = (
        np.concatenate([np.full(n, end), np.full(p, stop)])
        for end, stop in ((-np.inf, 0.0), (np.inf, 1.0))
    )
    leaving = LinearProgram(
        np.column_stack([G, np.eye(p)]),
        np.zeros(p),
        np.column_stack([E, np.zeros((len(E), p))]),
        np.zeros(len(E)),
        lower,
        upper,
    )
    found = leaving.solve_cold(np.repeat([0.0, -1.0], [n, p]))
    assert found is not None
    ray = found.x[:n]
    if found.x[n:].sum() <= FLAT:
        N = row_space(np.vstack([G, E]))
        if len(N) == n:
            return
        ray = np.linalg.svd(N)[2][-1] if len(N) else np.ones(n)
    at = int(np.argmax(np.abs(ray)))
    raise InvalidInput(
        f"The polytope is unbounded: entry {at} can {'grow' if ray[at] > 0 else 'fall'} without "
        "end; give it a bound."
    )


def row_space(rows: Floats) -> Floats:
    """Orthonormal rows that span the same directions."""
    _, sizes, directions = np.linalg.svd(rows, full_matrices=False)
    return directions[sizes > FLAT * np.max(sizes, initial=0.0)]  # type: ignore[no-any-return]


def _listed(names: list[str]) -> str:
    shown = names[:6] + ([f"{len(names) - 6} more"] if len(names) > 6 else [])
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
