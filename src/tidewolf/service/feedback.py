"""What a round turned out to be, as a request says it: numbers, gradients, or values.

{"costs": ..., "capacities": ...}                       functions, looked at anywhere
{"loss_gradient": ..., "constraint_value": ...}         at the point that was played
{"loss_value": ..., "constraint_value": ...}            there too, for who sees values alone
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.batch import Batch
from tidewolf.core.errors import InvalidInput
from tidewolf.core.types import Array
from tidewolf.live.entries import Entries, value_at, violation_at
from tidewolf.live.lines import NUMBERS
from tidewolf.service.description import Built

VALUES = ("loss_gradient", "constraint_value", "constraint_gradient", "loss_value")
BROKEN = 1e-9
"""Limits that are broken by less are not: that is rounding."""
ONLY_LIMIT = "the limit"
"""What a limit is called where a round has no other."""


class ReadFeedback(NamedTuple):
    """What a round turned out to be.

    Parameters
    ----------
    arguments : dict
        As `Session.observe` takes it.
    functions : (Batch, Batch), optional
        The loss and the limits. None: values, or gradients, at what was played are known alone.
    """

    arguments: dict[str, Any]
    functions: tuple[Batch, Batch] | None = None

    def cost(self, x: Array) -> float | None:
        """What the point cost; None where that is not known."""
        if self.functions is None:
            value = self.arguments.get("loss_value")
            return None if value is None else value + 0.0
        return value_at(self.functions[0], x)

    def violation(self, x: Array) -> float | None:
        """By how much it broke the limits."""
        if self.functions is None:
            return max(0.0, float(np.max(self.arguments["constraint_value"])))
        return violation_at(self.functions[1], x)

    def broken(self, x: Array, called: Callable[[Batch], Sequence[str]]) -> dict[str, float]:
        """By how much it broke each limit that it did break; `called` says what limits are."""
        if self.functions is None:
            values = np.atleast_1d(self.arguments["constraint_value"])
            names = [f"limit {i}" for i in range(1, len(values) + 1)]
        else:
            limits = self.functions[1]
            pieces = limits.pieces(x)
            values = limits.values(x) if pieces is None else np.asarray(pieces)[0]
            names = list(called(limits))
        if len(values) == 1 and names[0].startswith("limit "):
            names = [ONLY_LIMIT]
        return {names[i]: float(values[i]) for i in np.flatnonzero(values > BROKEN).tolist()}


def read(given: Mapping[str, Any], built: Built) -> ReadFeedback:
    """What an observation says.

    Parameters
    ----------
    given : mapping
        The request, its keys checked.
    built : Built
        Who makes functions of numbers, and what the entries of a point are called.

    Returns
    -------
    ReadFeedback
        As a session is told it.
    """
    numbers = {key: given[key] for key in NUMBERS if key in given}
    if "budget" in given:
        numbers.setdefault("budgets", given["budget"])
    values = {key: given[key] for key in VALUES if key in given}
    if numbers and values:
        raise InvalidInput(
            f"The observation has {next(iter(numbers))} and {next(iter(values))}: give what the "
            "round turned out to be, or gradients or values at what was played."
        )
    if values:
        return ReadFeedback(_values(values, built.entries))
    losses, limits = built.functions(numbers, "The observation")
    return ReadFeedback({"loss": losses, "constraint": limits}, (losses, limits))


def _values(given: dict[str, Any], entries: Entries) -> dict[str, Any]:
    if "constraint_value" not in given:
        raise InvalidInput(
            f"The observation has {next(iter(given))} and no constraint_value: give it; where "
            "there is no limit, any number that is not above 0."
        )
    several = isinstance(given["constraint_value"], list)
    arguments = dict(given)
    if several:
        arguments["constraint_value"] = np.array(given["constraint_value"])
    if "loss_gradient" in given:
        arguments["loss_gradient"] = entries.point(given["loss_gradient"], "loss_gradient")
    if "constraint_gradient" in given:
        slopes = given["constraint_gradient"]
        arguments["constraint_gradient"] = (
            np.array([entries.point(one, "constraint_gradient") for one in slopes])
            if several and isinstance(slopes, list)
            else entries.point(slopes, "constraint_gradient")
        )
    return arguments
