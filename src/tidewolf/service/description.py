"""Descriptions of sessions: the body of the request that creates a session.

    {"set": {"kind": "Simplex", "n": 5}, "rounds": 1000, "learners": [{"name": "Ensemble"}],
     "expire_after": 100, "deadline": 0.05, "fallback": {...}, "stale_after": 600}

The set and the learner are described by the keys of experiment files (`experiments.models`), with
graphs and arrays inline. The rest is the service's own: for how many rounds an observation may be
late, how long a decision may take, what is answered if the learner cannot decide, and after how
long without an observation the session is stale.

`canonical` is all of it but `why`, with keys in order: two requests ask for the same session where
that is the same text, and the text makes the same learner again, bit for bit.

What a round turned out to be is read here, too: numbers, gradients, or values.

    {"costs": ..., "capacities": ...}                       functions, looked at anywhere
    {"loss_gradient": ..., "constraint_value": ...}         at the point that was played
    {"loss_value": ..., "constraint_value": ...}            there too, if only values are seen
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self, final

import numpy as np
from pydantic import AliasChoices, Field, PrivateAttr, model_validator

from tidewolf.core.arguments import shown
from tidewolf.core.arrays import LARGEST_COUNT
from tidewolf.core.batch import Batch
from tidewolf.core.conforming import is_member
from tidewolf.core.errors import InvalidInput, NotAMember
from tidewolf.core.types import Array, NDArray
from tidewolf.experiments.building import make_learner
from tidewolf.experiments.experiment import USUAL
from tidewolf.experiments.keys import Choice, learner_keys
from tidewolf.experiments.loading import FILE_FORMAT, Place
from tidewolf.experiments.loading import Request as Document
from tidewolf.experiments.models import Described, Learner, SetTable, Source
from tidewolf.experiments.requests import NO_FILES, entries_of, require_modest_learner
from tidewolf.experiments.round_reader import RoundReader
from tidewolf.experiments.strict import Count, One, Positive, Seed, refused
from tidewolf.live.entries import Entries, follows_clock, paths_of, value_at, violation_at
from tidewolf.live.lines import NUMBERS
from tidewolf.methods import base
from tidewolf.networks import Network
from tidewolf.service.models import Request, Why
from tidewolf.sets import ConvexSet

DEEPEST = 24
"""Lists and objects within each other."""
MOST_VALUES = 1_000_000
"""Numbers, texts, lists and objects of a request."""
LONGEST_TEXT = 1000
"""Characters of a name, or another text."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x80-\x9f\ud800-\udfff]")
_REQUEST = Document("the request", {}, {})


@final
class Built:
    """A set, its names, who reads rows and who decides, built from a description.

    Parameters
    ----------
    reader : RoundReader
        The set, and who makes functions of rows on it.
    learner : Learner
        Who decides.

    Examples
    --------
    >>> from tidewolf.service.description import Description
    >>> built = Description.of({"set": {"kind": "Simplex", "n": 2}}).build()
    >>> built.names, built.entries.named(built.K.center)
    (['entry 0', 'entry 1'], {'entry 0': 0.5, 'entry 1': 0.5})
    >>> loss, limit = built.functions({"costs": [1.0, 0.0], "capacities": [0.5, 0.25]})
    >>> loss.values(built.K.center), limit.values(built.K.center)
    (array([0.5]), array([0.25]))
    """

    def __init__(
        self, reader: RoundReader, learner: base.Learner[Any], fallback: Array | None = None
    ) -> None:
        self.reader, self.learner = reader, learner
        self.entries = Entries(reader)
        self.fallback = fallback
        """the static decision of last resort, where the description has one"""

    @property
    def K(self) -> ConvexSet:
        """The set of decisions."""
        return self.reader.K

    @property
    def network(self) -> Network | None:
        """The network, where that is what is decided on."""
        return self.reader.network

    @property
    def names(self) -> list[str]:
        """What the entries of a decision are called, in their order."""
        return self.entries.names

    @cached_property
    def follows_clock(self) -> bool:
        """Whether decisions depend on the time of their round."""
        return follows_clock(self.learner)

    def functions(self, row: Mapping[str, Any], source: str = "The row") -> tuple[Batch, Batch]:
        """The loss and the limit of an observation: costs, capacities, weights and budgets,
        demands.

        Parameters
        ----------
        row : mapping
            Numbers by name, or lists, under their keys.
        source : str, default 'The row'
            What sentences call it.

        Returns
        -------
        tuple of Batch
            Of one round each.

        Raises
        ------
        InvalidInput
            Where no functions can be made of it.
        """
        if "budget" in row and "budgets" not in row:
            row = {"budgets" if name == "budget" else name: value for name, value in row.items()}
        try:
            return self.reader.functions(row, source)
        except InvalidInput as error:  # it reads a row as it does a table, which has lines
            raise type(error)(str(error).replace(", line 1:", ":")) from None

    def member(self, given: Any, what: str) -> Array:
        """A point that is a member of the set, by name or as a list.

        Parameters
        ----------
        given : mapping or list
            The numbers.
        what : str
            What sentences call it.

        Returns
        -------
        array
            Of the shape of the set's points.

        Raises
        ------
        NotAMember
            Where it is none, by more than rounding.
        """
        x = self.entries.point(given, what)
        self.require_member(x, what)
        return x

    def require_member(self, x: Array, what: str) -> None:
        """Refuse a point outside of the set, by more than rounding."""
        if not is_member(self.K, x):
            raise NotAMember(
                f"{what} should be a point of the set, and exceeds its limits by "
                f"{self.K.infeasibility(x):g}."
            )

    def paths(
        self, x: Array, demands: Sequence[float] | None = None
    ) -> list[dict[str, Any]] | None:
        """The paths of a flow, heaviest first; None where the decision is none.

        Parameters
        ----------
        x : array
            The decision.
        demands : sequence of float, optional
            What each commodity sends. None: what the network says.

        Returns
        -------
        list of dict or None
            Nodes, share and volume of each.
        """
        return paths_of(self.reader, x, demands)


class Description(Described, Request):
    """A session: its set, its learner, and how it is served.

    `of` makes one of a request's body, `parse` of its canonical text.

    Examples
    --------
    >>> from tidewolf.service.description import Description
    >>> request = Description.of({"set": {"n": 2, "kind": "Simplex"}, "why": "a trial"})
    >>> request.canonical
    '{"set":{"kind":"Simplex","n":2}}'
    >>> Description.parse(request.canonical) == request
    True
    """

    format: Annotated[int, Field(ge=1, le=FILE_FORMAT)] | None = None
    set: SetTable = Field(description="As [set] of an experiment file; graphs inline.")
    names: list[Annotated[str, Field(min_length=1)]] | None = Field(
        None, description="Names of the entries, in order."
    )
    learners: One[Learner] | None = Field(None, description="Who decides; Ensemble by default.")
    seeds: Seed | One[Seed] | None = Field(None, description="The seed of everything random.")
    caution: Positive | One[Positive] | None = Field(
        None, validation_alias=AliasChoices("caution", "cautions"), description="How careful."
    )
    expire_after: Count | None = Field(
        None, description="Rounds after which a decision is no longer pending."
    )
    deadline: Annotated[float, Field(gt=0.0, le=3600.0)] | None = Field(
        None, description="How long a decision may take. Unit: seconds."
    )
    stale_after: Positive | None = Field(
        None, description="When missing feedback is an alarm. Unit: seconds."
    )
    fallback: list[Any] | dict[str, Any] | None = Field(
        None, description="The point if all else fails: numbers by name, or a list."
    )
    why: Why | None = None
    _canonical: str = PrivateAttr("")

    @model_validator(mode="after")
    def _is_modest(self) -> Self:
        try:
            require_modest_learner(self.learner.given, entries_of(self.set))
        except InvalidInput as error:
            raise refused(str(error), "learners", 0, error.setting or "") from None
        return self

    @classmethod
    def of(cls, body: Any) -> Self:
        """What the body of a request describes, read and held against all limits.

        Parameters
        ----------
        body : object
            Plain data, as JSON gives it.

        Returns
        -------
        Description
            Nothing is built before `build`.

        Raises
        ------
        InvalidInput
            If it is not accepted: the sentence begins with the keys that lead there.
        """
        require_plain(body)
        found = cls.read(body, Source(None))
        said = {key: value for key, value in body.items() if key != "why" and value is not None}
        found._canonical = json.dumps(said, sort_keys=True, allow_nan=False, separators=(",", ":"))
        return found

    @classmethod
    def parse(cls, text: str) -> Self:
        """What the text of a description says, such as `canonical` of another.

        Parameters
        ----------
        text : str
            JSON.

        Returns
        -------
        Description
            The same as `of` makes of what it says.
        """
        try:
            return cls.of(json.loads(text))
        except (json.JSONDecodeError, TypeError, RecursionError) as error:
            raise InvalidInput(f"The description is no JSON: {error}.") from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Description) and self.canonical == other.canonical

    @property
    def canonical(self) -> str:
        """All of it but `why` as JSON, with keys in order: what is kept, and compared."""
        return self._canonical

    @property
    def learner(self) -> Choice:
        """The learner, with the caution that is given beside it."""
        chosen: Choice = USUAL if self.learners is None else self.learners[0]
        if self.caution is None or "caution" not in learner_keys(chosen.name):
            return chosen
        return Choice.of(chosen.name, {"caution": _one(self.caution), **chosen.given})

    def with_changes(self, **changes: Any) -> Description:
        """The same with another set, learner, or fallback, as a migration asks for.

        Parameters
        ----------
        changes : object
            What is new, by key; None: no more.

        Returns
        -------
        Description
            A new one. `build` refuses it if its parts do not fit.
        """
        return Description.of(json.loads(self.canonical) | changes)

    def build(self) -> Built:
        """The set, the reader and the learner, built.

        Returns
        -------
        Built
            The same one each time, bit for bit.

        Raises
        ------
        InvalidInput
            If there is no such set or learner, or the fallback is no point of the set.
        """
        with np.errstate(all="ignore"):  # sets refuse what is not finite
            names = tuple(self.names or ())
            reader = RoundReader.of_set(self.set, Place(_REQUEST, ("set",)), names)
            defaults = {"seed": _one(self.seeds or 0)}
            if self.rounds is not None:
                defaults["horizon"] = self.rounds
            place = Place(_REQUEST, ("learners", 0))
            learner = make_learner(
                self.learner, reader.K, reader.network, place, _no_table, defaults
            )
        built = Built(reader, learner)
        if self.fallback is not None:
            built.fallback = built.member(self.fallback, "The fallback")
        return built


def _one(given: Any) -> Any:
    """A value, which may be given as a list of one."""
    return given[0] if isinstance(given, list) else given


def _no_table(path: Path, place: Place) -> NDArray:
    raise InvalidInput(f"{place.words()}{NO_FILES}.")


def require_plain(data: Any) -> None:
    """Refuse what no JSON says, or what is too deep or too much of it.

    Parameters
    ----------
    data : object
        Objects, lists, texts, numbers, true, false and null.

    Raises
    ------
    InvalidInput
        If it is anything else, or there is too much.
    """
    left, waiting = MOST_VALUES, [(data, 0)]
    while waiting:
        value, depth = waiting.pop()
        if not isinstance(value, Mapping | list):
            _require_value(value)
            continue
        items = (*value, *value.values()) if isinstance(value, Mapping) else tuple(value)
        left -= len(items)
        if left < 0:
            raise InvalidInput(f"The request has over {MOST_VALUES:,} values: send fewer.")
        if depth >= DEEPEST:
            raise InvalidInput(f"The request is nested deeper than {DEEPEST} levels.")
        waiting += [(item, depth + 1) for item in items]


def _require_value(value: Any) -> None:
    """Refuse text that is too long or has control characters, and numbers out of range."""
    if isinstance(value, str):
        if len(value) > LONGEST_TEXT:
            raise InvalidInput(
                f"A text may have {LONGEST_TEXT:,} characters, not {len(value):,}: shorten it."
            )
        if _CONTROL.search(value):
            raise InvalidInput(f"A text of the request has a control character: {value!a}.")
    elif isinstance(value, int):
        if abs(value) > LARGEST_COUNT:
            raise InvalidInput(f"Whole numbers of a request go up to {LARGEST_COUNT}.")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInput(f"{value} is no finite number, and every number of a request is.")
    elif value is not None:
        raise InvalidInput(f"A request has numbers, texts, lists and objects, not {shown(value)}.")


# --- what a round turned out to be ----------------------------------------------------------------

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


def read_feedback(given: Mapping[str, Any], built: Built) -> ReadFeedback:
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
        As `Session.observe` takes it.
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
