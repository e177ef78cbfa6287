"""What a learner sees after it has played: a type, so that nothing more can leak.

A learner declares the kind it `needs`; the loop and sessions hand over exactly that, after the
action.
"""

import sys
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tidewolf.core import arrays
from tidewolf.core.arguments import listed, shown
from tidewolf.core.arrays import as_array, inner, is_array, like, namespace, norm, ones, to_numpy
from tidewolf.core.batch import Batch
from tidewolf.core.errors import InvalidInput, NotFinite, WrongShape, WrongType
from tidewolf.core.types import Array, Floats, Int64s, Shape

_DOUBLE, _FINITE = np.dtype(np.float64), sys.float_info.max


class FullInformation(NamedTuple):
    """The functions themselves."""

    losses: Batch
    constraints: Batch

    @property
    def rounds(self) -> int:
        return len(self.losses)


class Limits(NamedTuple):
    """Each limit that was broken for itself, if a round has several: sums over the rounds in
    which it was, at the played point.
    """

    # limits that a round has
    in_all: int
    # those that were broken, from 0, in order; one entry, or row, each in what follows
    which: Int64s
    violations: Floats
    # (broken, *shape)
    gradients: Array
    # the largest norm of a single round's gradient
    slopes: Floats
    # sum <gradient, x_t - x> of rounds that were not played at x
    offsets: Floats

    def and_of(self, other: "Limits") -> "Limits":
        if other.in_all != self.in_all:
            raise WrongShape(other_count(other.in_all, self.in_all))
        parts = zip(self[1:], other[1:], strict=True)
        return _by_limit(Limits(self.in_all, *(namespace(a).concat([a, b]) for a, b in parts)))


def other_count(given: int, due: int) -> str:
    return (
        f"A round with {given} limit{'s' * (given != 1)} was given after one with {due}; with a "
        "weight for each limit every round has the same ones, in one order."
    )


class Spend(NamedTuple):
    """What budgets spent above their plans, summed over rounds at the played point."""

    names: tuple[str, ...]
    # one of each budget in what follows
    values: Floats
    # (budgets, *shape)
    gradients: Array


class FirstOrder(NamedTuple):
    """Sums over the rounds since the last update, all at the played point.

    Parameters
    ----------
    loss_gradient : array
        sum_t grad f_t(x).
    violation : float
        sum_t max(g_t(x), 0).
    constraint_gradient : array
        The sum of grad g_t(x) over the rounds with g_t(x) > 0.
    loss_slope : float
        The largest norm of a single round's grad f_t(x).
    constraint_slope : float
        The largest norm of a single round's grad g_t(x) among those with g_t(x) > 0, else 0.
    rounds : int
        How many rounds.
    loss_offset : float, default 0.0
        sum_t <grad f_t(x_t), x_t - x>, where rounds were played at x_t and not at the point x
        that the learner stands at: it was overridden, or they are observed late.
    constraint_offset : float, default 0.0
        The same of the constraints, over the rounds with g_t(x_t) > 0.
    limits : Limits, optional
        Each limit for itself, where the learner asks for that.
    spend : Spend, optional
        What budgets spent above their plans, and its gradients, where there are budgets.
    """

    loss_gradient: Array
    violation: float
    constraint_gradient: Array
    loss_slope: float
    constraint_slope: float
    rounds: int
    loss_offset: float = 0.0
    constraint_offset: float = 0.0
    limits: Limits | None = None
    spend: Spend | None = None

    @property
    def is_plain(self) -> bool:
        """Whether it is on one round, at the point that the learner stands at, all limits together,
        in numbers and arrays of doubles.
        """
        f, violation, g, loss_slope, constraint_slope, rounds, *offsets, limits, spend = self
        return (
            type(f) is type(g) is np.ndarray
            and f.dtype == g.dtype == _DOUBLE
            and f.shape == g.shape
            and type(violation) is type(loss_slope) is type(constraint_slope) is float
            and 0.0 <= violation <= _FINITE
            and loss_slope >= 0.0
            and constraint_slope >= 0.0
            and type(rounds) is int
            and rounds == 1
            and offsets == [0.0, 0.0]
            and limits is None
            and spend is None
        )


class Bandit(NamedTuple):
    """Two numbers per round, at the point of that round."""

    loss_values: Array
    constraint_values: Array

    @property
    def rounds(self) -> int:
        return int(self.loss_values.shape[0])


Feedback: TypeAlias = FullInformation | FirstOrder | Bandit


class Instead(NamedTuple):
    """What per round cost at the point that was played, and what it would have at the decision."""

    loss: float
    violation: float
    own_loss: float
    own_violation: float


class Arrival(NamedTuple):
    round: int
    feedback: Feedback
    # what was played in place of the decision; None: the decision
    played: Array | None = None
    # None if the functions were not seen, or the decision was played; where it is there, what
    # is seen is of the decision
    instead: Instead | None = None
    # what is remembered of costs after it, if some are not seen (methods/partly_seen.py)
    costs: Any = None

    @property
    def of_decision(self) -> bool:
        return self.played is None or self.instead is not None


# What a learner that needs such feedback sees, in words: learners that see less are not compared
# with those that see more.
SEES = {
    FullInformation: "whole functions",
    FirstOrder: "gradients",
    Bandit: "two numbers per round",
}


def who_sees_what(feedback: Iterable[tuple[str, str]]) -> str:
    usual, kinds = SEES[FirstOrder], dict[str, list[str]]()
    for name, sees in dict.fromkeys(feedback):
        kinds.setdefault(sees, []).append(name)
    parts = [
        f"{listed(names, most=len(names))} see{'s' * (len(names) == 1)} {sees}"
        for sees, names in kinds.items()
        if sees and sees != usual
    ]
    rest = f"; the others see {usual}." if usual in kinds else "."
    return ", ".join(parts) + rest if parts else ""


def played_at(feedback: FirstOrder, played: Array, x: Array) -> FirstOrder:
    if played is x:
        return feedback
    apart = played - x
    limits = feedback.limits
    if limits is not None:
        offsets = [inner(limits.gradients[i, ...], apart) for i in range(len(limits.which))]
        limits = limits._replace(offsets=limits.offsets + np.array(offsets))
    return feedback._replace(
        loss_offset=feedback.loss_offset + inner(feedback.loss_gradient, apart),
        constraint_offset=feedback.constraint_offset + inner(feedback.constraint_gradient, apart),
        limits=limits,
    )


def limits_of(feedback: FirstOrder) -> Limits:
    if feedback.limits is not None:
        return feedback.limits
    there = np.arange(int(feedback.violation > 0.0))
    numbers = (feedback.violation, feedback.constraint_slope, feedback.constraint_offset)
    violations, slopes, offsets = (np.full(len(there), float(number)) for number in numbers)
    gradients = feedback.constraint_gradient[None, ...][: len(there), ...]
    return Limits(1, there, violations, gradients, slopes, offsets)


def _broken(in_all: int, which: Int64s, violations: Floats, gradients: Array) -> Limits:
    slopes = np.array([norm(gradients[i, ...]) for i in range(len(which))])
    return Limits(in_all, which, violations, gradients, slopes, np.zeros(len(which)))


def limits_at(constraints: Batch, x: Array, values: Array) -> Limits:
    pieces = constraints.pieces(x)
    table = to_numpy(values[:, None] if pieces is None else pieces)
    rounds, which = np.nonzero(table > 0.0)
    gradients = arrays.zeros((0, *x.shape), x)
    if len(which):
        gradients = constraints.piece_gradients(x, rounds, which)
    found = _broken(table.shape[1], which, table[rounds, which].astype(np.float64), gradients)
    return found if len(table) == 1 else _by_limit(found)


def per_constraint_feedback(loss_gradient: Array, values: Any, gradients: Any = None) -> FirstOrder:
    """Feedback on one round from the value of each of its constraints and their gradients, which
    may be left out if none is violated.
    """
    table = to_numpy(as_array(values, "constraint_value")).astype(np.float64)
    which, due = np.flatnonzero(table > 0.0), (len(table), *loss_gradient.shape)
    if gradients is None and len(which):
        raise InvalidInput("A constraint_value above 0 needs constraint_gradient, one per limit.")
    given = np.zeros(due) if gradients is None else as_array(gradients, "constraint_gradient")
    if tuple(given.shape) != due:
        raise WrongShape(f"constraint_gradient must have shape {due}, not {tuple(given.shape)}.")
    rows = arrays.taken(like(given, loss_gradient), which)
    limits = _broken(len(table), which, table[which], rows)
    loss, slope = loss_gradient, norm(loss_gradient)
    if not len(which):
        return FirstOrder(loss, 0.0, 0.0 * loss, slope, 0.0, 1, limits=limits)
    worst = int(limits.violations.argmax())
    violation, steepness = float(limits.violations[worst]), float(limits.slopes[worst])
    return FirstOrder(loss, violation, rows[worst, ...], slope, steepness, 1, limits=limits)


def _by_limit(given: Limits) -> Limits:
    which, place = np.unique(given.which, return_inverse=True)
    n, gradients = len(which), given.gradients
    mine = (np.arange(n)[:, None] == place).astype(np.float64)
    xp = namespace(gradients)
    table = xp.reshape(gradients, (len(place), int(np.prod(gradients.shape[1:]))))
    return Limits(
        given.in_all,
        which,
        mine @ given.violations,
        xp.reshape(like(mine, table) @ table, (n, *gradients.shape[1:])),
        np.array([given.slopes[place == i].max() for i in range(n)]),
        mine @ given.offsets,
    )


def compared(feedback: FullInformation, played: Array, x: Array) -> Instead | None:
    try:
        loss, own_loss = (float(feedback.losses.values(point)[0]) for point in (played, x))
        value, own_value = (float(feedback.constraints.values(point)[0]) for point in (played, x))
    except InvalidInput:
        return None
    return Instead(loss, max(value, 0.0), own_loss, max(own_value, 0.0))


def first_order(
    losses: Batch,
    constraints: Batch,
    x: Array,
    constraint_values: Array,
    per_constraint: bool = False,
) -> FirstOrder:
    """The first-order feedback of these rounds at x, given the constraints' values there; with each
    limit for itself, where that is asked for.
    """
    if per_constraint:
        return first_order(losses, constraints, x, constraint_values)._replace(
            limits=limits_at(constraints, x, constraint_values)
        )
    if losses.budgets:
        found = first_order(losses.without_budgets, constraints, x, constraint_values)
        return found._replace(spend=spend_at(losses, x))
    if len(losses) == 1:  # the norm of its gradient is its slope
        one, value = ones(1, x), float(constraint_values[0])
        grad_f = losses.subgradient(x, one)
        if value <= 0.0:
            return FirstOrder(grad_f, 0.0, 0.0 * x, norm(grad_f), 0.0, 1)
        grad_g = constraints.subgradient(x, one)
        return FirstOrder(grad_f, value, grad_g, norm(grad_f), norm(grad_g), 1)
    xp = namespace(constraint_values)
    breached = constraint_values > 0
    weights = xp.astype(breached, x.dtype)
    violation = float(xp.sum(constraint_values * weights))
    slopes = constraints.slopes(x)[to_numpy(breached)] if violation > 0 else np.zeros(1)
    return FirstOrder(
        loss_gradient=losses.subgradient(x, xp.ones_like(weights)),
        violation=violation,
        constraint_gradient=constraints.subgradient(x, weights),
        loss_slope=float(losses.slopes(x).max()),
        constraint_slope=float(slopes.max()),
        rounds=len(losses),
    )


def spend_at(losses: Batch, x: Array) -> Spend | None:
    """What the budgets beside these losses spend at x; None if there are none."""
    if not losses.budgets:
        return None
    one, names = ones(len(losses), x), tuple(losses.budgets)
    each = list(losses.budgets.values())
    values = np.array([float(to_numpy(batch.values(x)).sum()) for batch in each])
    gradients = namespace(x).stack([batch.subgradient(x, one) for batch in each])
    arrays.require_finite(values, "The spend")
    return Spend(names, values, gradients)


# Values of functions are at most this in size, so that their squares can be added up.
MODERATE = 1e100


def require_first_order(feedback: object, shape: Shape, most: int) -> None:
    if type(feedback) is not FirstOrder:
        raise _other_kind("FirstOrder feedback", feedback)
    _require_rounds(feedback.rounds, most)
    _require_gradient(feedback.loss_gradient, shape, "loss_gradient")
    _require_gradient(feedback.constraint_gradient, shape, "constraint_gradient")
    violation, offsets = feedback.violation, (feedback.loss_offset, feedback.constraint_offset)
    # infinite if a gradient is too long to be squared
    slopes = (feedback.loss_slope, feedback.constraint_slope)
    numbers = (violation, *slopes, *offsets)
    if (
        not all(isinstance(number, float | int) for number in numbers)
        or not (0.0 <= violation <= _FINITE and slopes[0] >= 0.0 and slopes[1] >= 0.0)
        or not (abs(offsets[0]) <= _FINITE and abs(offsets[1]) <= _FINITE)
    ):
        words = "The violation and slopes must be at least 0, the violation and offsets finite"
        raise NotFinite(f"{words}; received {shown(numbers)}.")
    if feedback.limits is not None:
        require_limits(feedback.limits, shape)


def _other_kind(expected: str, given: object) -> WrongType:
    return WrongType(f"{expected} is expected, not {type(given).__name__}.")


def _require_rounds(rounds: object, most: int) -> None:
    if not isinstance(rounds, int | np.integer) or not 1 <= rounds <= most:
        raise InvalidInput(f"The rounds of feedback must be 1 to {most}, not {shown(rounds)}.")


def _require_gradient(gradient: Array, shape: Shape, name: str) -> None:
    if not is_array(gradient) or gradient.shape != shape:
        kind = WrongShape if is_array(gradient) else WrongType
        raise kind(f"The {name} must be an array of shape {shape}, not {shown(gradient)}.")
    if arrays.as_direction(gradient, shape, f"The {name}") is not gradient:
        raise WrongType(f"The {name} must hold floating-point numbers, not {gradient.dtype}.")


def require_limits(limits: object, shape: Shape) -> None:
    if type(limits) is not Limits:
        raise _other_kind("Limits", limits)
    which, n = np.asarray(limits.which), len(limits.which)
    numbers = [np.asarray(each) for each in (limits.violations, limits.slopes, limits.offsets)]
    if (
        type(limits.in_all) is not int
        or which.dtype.kind != "i"
        or any(array.shape != (n,) for array in (which, *numbers))
        or (n and not (which[0] >= 0 and (np.diff(which) > 0).all() and which[-1] < limits.in_all))
    ):
        words = "one violation, gradient, slope and offset for each of `which`"
        raise WrongShape(f"Limits need {words}, ascending numbers from 0 to in_all - 1.")
    _require_gradient(limits.gradients, (n, *shape), "gradients of limits")
    arrays.require_finite(limits.gradients, "The gradients of limits")
    violations, slopes, offsets = numbers
    finite = np.isfinite(violations) & np.isfinite(offsets)
    if not (finite & (violations >= 0.0) & (slopes >= 0.0)).all():
        raise NotFinite("Violations and slopes must be at least 0, violations and offsets finite.")


def require_bandit(feedback: object, most: int) -> Bandit:
    if type(feedback) is not Bandit or not all(map(is_array, feedback)):
        raise _other_kind("Bandit feedback, arrays loss_values and constraint_values,", feedback)
    shape, copies = tuple(feedback.loss_values.shape), []
    for name, values in zip(Bandit._fields, feedback, strict=True):
        if values.ndim != 1 or tuple(values.shape) != shape:
            raise WrongShape(f"The {name} must have shape {shape}, not {tuple(values.shape)}.")
        _require_rounds(feedback.rounds, most)
        values = arrays.as_direction(values, shape, f"The {name}")
        copies.append(arrays.frozen(np.array(to_numpy(values), dtype=np.float64)))
        if not (size := float(np.abs(copies[-1]).max())) <= MODERATE:
            raise NotFinite(f"The {name} must be at most {MODERATE:g} in size, not {size:g}.")
    return Bandit(*copies)


def require_full_information(feedback: object, shape: Shape, most: int) -> FullInformation:
    if type(feedback) is not FullInformation or not all(isinstance(f, Batch) for f in feedback):
        raise _other_kind("FullInformation feedback", feedback)
    for name, batch in zip(FullInformation._fields, feedback, strict=True):
        if batch.shape != shape or len(batch) != feedback.rounds:
            due = f"{feedback.rounds} rounds on points of shape {shape}"
            found = f"{len(batch)} on points of shape {batch.shape}"
            raise WrongShape(f"The {name} must be {due}, not {found}.")
    _require_rounds(feedback.rounds, most)
    return feedback
