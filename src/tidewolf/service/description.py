"""What a session of the service is: the body of the request that made it.

    {"set": {"kind": "Simplex", "n": 5}, "rounds": 1000, "learners": [{"name": "Ensemble"}],
     "expire_after": 100, "deadline": 0.05, "fallback": {...}, "stale_after": 600}

The set and the learner are described by the keys of experiment files (`experiments.inline`), with
graphs and arrays inline. The rest is the service's own: for how many rounds an observation may be
late, how long a decision may take, what is answered where nobody can decide, and after how long
without an observation somebody should look.

`canonical` is all of it but `why`, with keys in order: two requests ask for the same session where
that is the same text, and the text makes the same learner again, bit for bit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, final

from tidewolf.core.batch import Batch
from tidewolf.core.conforming import is_member
from tidewolf.core.errors import InvalidInput, NotAMember
from tidewolf.core.types import Array
from tidewolf.experiments.inline import Inline, require_plain
from tidewolf.experiments.round_reader import RoundReader
from tidewolf.live.entries import Entries, follows_clock, paths_of
from tidewolf.methods.base import Learner
from tidewolf.networks import Network
from tidewolf.service import models
from tidewolf.sets import ConvexSet

OWN = ("expire_after", "deadline", "stale_after", "fallback", "why")
"""Keys of the service's own."""


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
        self, reader: RoundReader, learner: Learner[Any], fallback: Array | None = None
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
        if not is_member(self.K, x):
            raise NotAMember(
                f"{what} is no member of the set: it exceeds its limits by "
                f"{self.K.infeasibility(x):g}. "
                "Give a point of the set."
            )
        return x

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


@final
@dataclass(frozen=True)
class Description:
    """What a session is: its set, its learner, and how the service is to run it.

    `of` makes one of a request's body, `read` of its canonical text.

    Parameters
    ----------
    canonical : str
        All of it but `why` as JSON, with keys in order: what is kept, and compared.
    inline : Inline
        The set and the learner.
    expire_after : int, optional
        For how many rounds an observation is waited for. None: without end.
    deadline : float, optional
        How long a decision may take. Unit: seconds. None: as the service says.
    stale_after : float, optional
        After how long without an observation a session is stale. Unit: seconds. None: never.
    fallback : object
        The static decision as it was given, by name or as a list. None: there is none.
    why : str, default ''
        Why it is asked for.

    Examples
    --------
    >>> from tidewolf.service.description import Description
    >>> request = Description.of({"set": {"n": 2, "kind": "Simplex"}, "why": "a trial"})
    >>> request.canonical
    '{"set":{"kind":"Simplex","n":2}}'
    >>> Description.read(request.canonical) == request
    True
    """

    canonical: str
    inline: Inline = field(compare=False, repr=False)
    expire_after: int | None = field(default=None, compare=False)
    deadline: float | None = field(default=None, compare=False)
    stale_after: float | None = field(default=None, compare=False)
    fallback: Any = field(default=None, compare=False)
    why: str = field(default="", compare=False)

    @classmethod
    def of(cls, body: Any) -> Description:
        """What the body of a request describes.

        Parameters
        ----------
        body : object
            Plain data, as JSON gives it.

        Returns
        -------
        Description
            Read and held against all limits; nothing is built before `build`.

        Raises
        ------
        InvalidInput
            Where it says something that is not accepted.
        """
        require_plain(body)
        given = models.Description.read(body).given
        own = {name: given[name] for name in OWN if name in given}
        return cls(_text(body), Inline.of(given), **own)

    @classmethod
    def read(cls, text: str) -> Description:
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
            body = json.loads(text)
        except (ValueError, TypeError, RecursionError) as error:
            raise InvalidInput(f"The description is no JSON: {error}.") from None
        return cls.of(body)

    @property
    def data(self) -> dict[str, Any]:
        """What the canonical text says, as plain data."""
        found: dict[str, Any] = json.loads(self.canonical)
        return found

    @property
    def learner(self) -> str:
        """The name of the learner."""
        return self.inline.learner.name

    def with_changes(self, **changes: Any) -> Description:
        """The same with another set, learner, or fallback, as a migration asks for.

        Parameters
        ----------
        changes : object
            What is new, by key; None: no more.

        Returns
        -------
        Description
            A new one. What is not given stays; `built` refuses it where it fits no more.
        """
        return Description.of(self.data | changes)

    def build(self) -> Built:
        """The set, the reader and the learner, built.

        Returns
        -------
        Built
            The same one each time, bit for bit.

        Raises
        ------
        InvalidInput
            Where no set, or no learner, is described by it; or where the fallback is no point of
            the set.
        """
        reader = self.inline.reader()
        built = Built(reader, self.inline.decider(reader))
        if self.fallback is not None:
            built.fallback = built.member(self.fallback, "The fallback")
        return built


def _text(said: Mapping[str, Any]) -> str:
    kept = {name: value for name, value in said.items() if name != "why" and value is not None}
    return json.dumps(kept, sort_keys=True, allow_nan=False, separators=(",", ":"))
