"""Feedback as `Session.observe` receives it: read, checked against the learner, and reduced to what
the learner reads.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tidewolf.core import arrays, conforming, frames, oracle, round_info, values
from tidewolf.core.arguments import as_items, listed, shown
from tidewolf.core.batch import Batch, Stream, as_constraints
from tidewolf.core.errors import InvalidInput, NotAMember, NotSupported, WrongShape, WrongType
from tidewolf.core.feedback import (
    Arrival,
    Bandit,
    Feedback,
    FirstOrder,
    FullInformation,
    compared,
    first_order,
    per_constraint_feedback,
)
from tidewolf.core.types import Array, Floats
from tidewolf.functions import combined, support
from tidewolf.functions.linear import Affine, Capacity, Linear, weighted_rows
from tidewolf.methods import base, capabilities, compiled_rounds, partly_seen
from tidewolf.sets.simplices import Simplex, SimplexProduct

_DOUBLE = np.dtype(np.float64)
_FUNCTIONS = "loss= and constraint="
_GRADIENTS = "loss_gradient= and constraint_value=, with constraint_gradient= if it is positive"
# The keywords that make each kind of feedback.
_TEACHES = {
    FullInformation: _FUNCTIONS,
    FirstOrder: f"{_FUNCTIONS}, or {_GRADIENTS}",
    Bandit: f"loss_value= and constraint_value=, or {_FUNCTIONS}",
}
# Keywords that make functions: one of the first, and any of the second.
_LOSSES, _LIMITS = {"costs", "loss"}, {"capacities", "constraint", "weights", "budgets"}


def accepted(learner: base.Learner[Any]) -> str:
    needs = learner.needs
    return (
        f"{type(learner).__name__} needs {needs.__name__} feedback, or {_TEACHES[needs]}. "
        "A linear loss and constraints may be given as costs=, capacities=, weights= with budgets=."
    )


def given_feedback(
    learner: base.Learner[Any], feedback: Feedback | None, keywords: dict[str, Any]
) -> Feedback:
    given = {name: value for name, value in keywords.items() if value is not None}
    names = set(given)
    if isinstance(feedback, Feedback) and not given:
        return _checked(learner, feedback)
    if feedback is None:
        whole = len(names & {"weights", "budgets"}) != 1
        if len(names & _LOSSES) == 1 and whole and names <= _LOSSES | _LIMITS:
            return given_functions(learner, given)
        if names == {"constraint_value", "loss_value"}:
            both = "loss_value", "constraint_value"
            return Bandit(*(arrays.as_array([given[name]], name) for name in both))
        if names - {"constraint_gradient"} == {"loss_gradient", "constraint_value"}:
            return _one_round(learner, given)
    received = [*([] if feedback is None else [f"a {type(feedback).__name__}"]), *given]
    words = " and ".join(received) or "nothing"
    raise InvalidInput(f"observe received {words}; {accepted(learner)}")


def _checked(learner: base.Learner[Any], feedback: Feedback) -> Feedback:
    if not isinstance(feedback, FirstOrder) or learner.needs is not FirstOrder:
        return feedback
    return feedback._replace(
        loss_gradient=point(learner, feedback.loss_gradient, "The loss gradient"),
        violation=arrays.as_number(feedback.violation, "The violation", least=0.0),
        constraint_gradient=point(learner, feedback.constraint_gradient, "The constraint gradient"),
        rounds=arrays.as_count(feedback.rounds, "The number of rounds"),
    )


def given_functions(learner: base.Learner[Any], given: dict[str, Any]) -> FullInformation:
    loss: Any = given.get("loss")
    constraint: Any = given.get("constraint")
    limits = list[Any]()
    if "costs" in given:
        loss = Linear._unchecked(C=point(learner, given["costs"], "costs")[None, ...])
    if "weights" in given:
        limits.append(_weighted(learner, given["weights"], given["budgets"]))
    if "capacities" in given:
        limits.append(
            Capacity._unchecked(c=point(learner, given["capacities"], "capacities")[None, ...])
        )
    if limits:
        more = constraint if isinstance(constraint, list | tuple) else [constraint]
        constraint = [*limits, *([] if constraint is None else more)]
    if isinstance(loss, Batch):
        constraint = as_constraints(constraint, loss)
    return FullInformation(loss, constraint)


def charged(
    learner: base.Learner[Any], state: Any, seen: Feedback, spend: Any, number: int
) -> FullInformation:
    """Feedback on one round with what it spends above the plans of the learner's budgets."""
    budgets = {one.name: one for one in getattr(learner, "budgets", ())}
    if not isinstance(spend, Mapping) or set(spend) != set(budgets):
        due = f"{{name: amounts}} of {listed(list(budgets)) or 'no budget'}"
        received = listed([*spend]) if isinstance(spend, Mapping) else shown(spend)
        raise InvalidInput(
            f"spend must be {due}, as the learner's budgets are called, not {received}.",
            setting="spend",
        )
    if not isinstance(seen, FullInformation) or len(seen.losses) != 1:
        raise InvalidInput(
            "spend goes with costs= or loss= of one round, not with other feedback.",
            setting="spend",
        )
    above = list[Batch]()
    for name, budget in budgets.items():
        plan = np.array(
            [budget.planned(number, state.budgets.elapsed, getattr(learner, "horizon", None))]
        )
        if isinstance(one := spend[name], Batch):
            above.append(combined.Sum(one, Affine(np.zeros((1, *learner.K.shape)), plan)))
        else:
            row = point(learner, one, f"The spend of {name!r}")
            above.append(Affine._unchecked(A=row[None, ...], b=arrays.like(plan, row)))
    return FullInformation(
        combined.Charged(parts=(seen.losses, *above), names=tuple(budgets)), seen.constraints
    )


def _weighted(learner: base.Learner[Any], weights: Any, budgets: Any) -> Batch:
    """<weights, x> <= budgets: one row, or a row for each of several budgets."""
    b = arrays.as_array(budgets, "budgets")
    rows = [weights] if b.ndim == 0 else as_items(weights, "weights", "[[1.0, 2.0], [0.0, 1.0]]")
    if b.ndim > 1 or (b.ndim == 1 and len(rows) != b.shape[0]):
        expected = "one number, or one for each row of weights"
        words = f"Expected budgets as {expected}; {len(rows)} rows and {shown(budgets)} were given."
        raise WrongShape(words, setting="budgets")
    A = arrays.namespace(learner.K.center).stack([point(learner, row, "weights") for row in rows])
    b = arrays.like(b, A)
    return weighted_rows(A, b[None]) if b.ndim == 0 else weighted_rows(A[None, ...], b[None, ...])


def _one_round(learner: base.Learner[Any], given: dict[str, Any]) -> FirstOrder:
    grad_f = point(learner, given["loss_gradient"], "loss_gradient")
    grad_g = given.get("constraint_gradient")
    if capabilities.is_per_constraint(learner) and np.ndim(given["constraint_value"]) == 1:
        return per_constraint_feedback(grad_f, given["constraint_value"], grad_g)
    value = arrays.as_number(given["constraint_value"], "constraint_value")
    if value > 0.0 and grad_g is None:
        raise InvalidInput(f"constraint_value is {value:g}, above 0: give constraint_gradient.")
    grad_g = None if grad_g is None else point(learner, grad_g, "constraint_gradient")
    return of_gradients(learner.K, grad_f, value, grad_g)


def of_gradients(K: oracle.HasLMO, grad_f: Array, value: float, grad_g: Array | None) -> FirstOrder:
    """The feedback on one round whose constraint has this value; the gradient of one that is not
    violated does not count.
    """
    if value > 0.0 and grad_g is not None:
        return FirstOrder(grad_f, value, grad_g, arrays.norm(grad_f), arrays.norm(grad_g), 1)
    return FirstOrder(grad_f, 0.0, 0.0 * K.center, arrays.norm(grad_f), 0.0, 1)


def of_costs(
    K: oracle.HasLMO, costs: Floats, capacities: Floats | None, x: Floats, value: float
) -> FirstOrder:
    gradient = None
    if value > 0.0 and capacities is not None:
        gradient = np.zeros(len(x))
        gradient[(x - capacities[0]).argmax()] = 1.0
    return of_gradients(K, costs[0], value, gradient)


def arrival(
    learner: base.Learner[Any],
    state: Any,
    number: int,
    seen: Feedback,
    x: Array,
    played: Array | None,
    late: bool,
    looked_at: set[int],
    costs: partly_seen.LastCosts | None = None,
) -> Arrival:
    """Feedback on a round that was decided at x, as the learner reads it. `late`: whether rounds
    are pending; `looked_at` are entries whose negative capacity was reported.
    """
    at, instead = x, None
    if late or played is not None:
        capabilities.late_feedback(learner)
        rounds = len(seen.losses) if isinstance(seen, FullInformation) else seen.rounds
        if rounds != 1:
            raise InvalidInput(
                "Expected 1 round at a time if feedback is late or of another point than was "
                f"decided, not {rounds} rounds."
            )
    if played is not None:
        if isinstance(seen, FullInformation):
            instead = compared(seen, played, x)
        at = played if instead is None else x
    return Arrival(number, _revealed(learner, state, seen, at, looked_at), played, instead, costs)


def _revealed(
    learner: base.Learner[Any], state: Any, seen: Feedback, x: Array, looked_at: set[int]
) -> Feedback:
    if isinstance(seen, FullInformation):
        require_functions(learner, state, seen, looked_at)
        reads = capabilities.feedback_read(learner, seen.losses)
        if reads is Bandit:
            points = capabilities.acts(learner, state, seen.rounds)
            return Bandit(*(batch.values_at(points) for batch in seen))
        if state.t < support.FIRST:
            played, members = support.Member(x, "the point"), support.members_of(learner.K.center)
            for kind, batch in zip(("loss", "constraint"), seen, strict=True):
                support.require_subgradients(
                    kind, batch.view(slice(0, 1)), state.t, played, members
                )
        if reads is FullInformation:
            return seen
        return first_order(
            *seen, x, seen.constraints.values(x), capabilities.is_per_constraint(learner)
        )
    if not isinstance(seen, learner.needs):
        raise NotSupported(f"{type(seen).__name__} feedback was given; {accepted(learner)}")
    return seen


def require_functions(
    learner: base.Learner[Any], state: Any, seen: FullInformation, looked_at: set[int]
) -> None:
    for name, batch in zip(("loss", "constraint"), seen, strict=True):
        if not isinstance(batch, Batch):
            raise WrongType(f"The {name} must be a batch, as Linear.one(costs), not {batch!r}.")
    shape, (f, g) = learner.K.shape, seen
    if not (len(f) == len(g) == 1 and f.shape == g.shape == shape):
        stream, most = (
            Stream(*seen),
            capabilities.rounds_at_once(learner, compiled_rounds.whole(state)),
        )
        if stream.shape != shape:
            raise WrongShape(f"Expected functions of points of shape {shape}, not {stream.shape}.")
        if not 1 <= len(stream) <= most:
            raise InvalidInput(f"Expected functions of 1 to {most} rounds, received {len(stream)}.")
    support.warn_of_negative_capacities(
        learner.K, seen.constraints, looked_at, state.t, stacklevel=7
    )


def require_member(learner: base.Learner[Any], played: Array) -> None:
    K = learner.K
    infeasibility, allowed = K.infeasibility(played), conforming.allowed_infeasibility(K, played)
    if not infeasibility <= allowed:
        raise NotAMember(
            f"Expected a point of the set as played; it is infeasible by {infeasibility:g}, and "
            f"rounding allows {allowed:.1g}."
        )


def require_fitting(learner: base.Learner[Any], info: round_info.RoundInfo) -> None:
    shapes = {f"The advice {name!r}": tuple(x.shape) for name, x in (info.advice or {}).items()}
    if info.forecast is not None:
        shapes["The forecast"] = info.forecast.losses.shape
    for what, shape in shapes.items():
        if shape != learner.K.shape:
            raise WrongShape(f"{what} has shape {shape}, not {learner.K.shape} as points.")


def point(learner: base.Learner[Any], x: Any, what: str) -> Array:
    K = learner.K
    center = K.center
    plain = type(x) is type(center) is np.ndarray and x.dtype is center.dtype is _DOUBLE
    if plain and x.shape == center.shape:
        arrays.require_finite(x, what)
        return x
    return arrays.like(arrays.as_point(by_name(learner, x, what), K.shape, what), center)


def by_name(
    learner: base.Learner[Any], x: Any, what: str, *, gaps: bool = False, partly: bool = False
) -> Any:
    K = learner.K
    return frames.in_order(x, getattr(K, "names", None), what, K.shape, gaps=gaps, partly=partly)


def imputed(
    learner: base.Learner[Any], last: partly_seen.LastCosts | None, costs: Any
) -> tuple[Any, partly_seen.LastCosts | None, Array | None]:
    """Costs by name, of which some may be missing, as they are imputed; what is remembered after
    them, and they themselves. As they are and twice None if no cost is missing and none ever was,
    if the set is no simplex, and if the learner remembers none.
    """
    if last is None or not isinstance(learner.K, Simplex | SimplexProduct):
        return costs, None, None
    given = by_name(learner, costs, "costs", partly=True)
    if given is costs or not np.isnan(given).any():
        if not last.imputed:
            return given, None, None
        given = arrays.to_numpy(point(learner, given, "costs"))
    return *last.imputing(given), given


def is_vector(x: object, n: int) -> bool:
    return type(x) is np.ndarray and x.dtype is _DOUBLE and x.shape == (n,)


def content(seen: Feedback, played: Array | None, costs: Array | None = None) -> str:
    """The identity of an observation as it was given, with these costs before any was imputed;
    empty if it has none, such as that of a Python function.
    """
    if costs is not None and isinstance(seen, FullInformation) and isinstance(seen.losses, Linear):
        seen = seen._replace(losses=Linear._unchecked(C=costs[None, ...]))
    try:
        return values.identity((type(seen).__name__, tuple(seen), played))
    except NotSupported:
        return ""
