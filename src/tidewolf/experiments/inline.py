"""A set and a learner as a request describes them: the keys of an experiment file, as JSON.

    {"set": {"kind": "Simplex", "n": 5}, "rounds": 1000, "learners": [{"name": "Ensemble"}]}
    {"set": {"graph": [["SEA", "DEN"], {"tail": "DEN", "head": "NYC", "capacity": 2.0}],
             "source": "SEA", "target": "NYC"}}

Graphs, commodities and arrays are given as they are. Nothing here looks at a file: text where a
file of experiments might name one is refused, whatever it says, before anything is built; and so
is what would be too large (sizes.py). Sentences are those of files, with the keys that lead to what
is wrong in place of a line: "learners, 1, caution: ...".
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np

from tidewolf.core.arguments import shown
from tidewolf.core.arrays import LARGEST_COUNT
from tidewolf.core.errors import InvalidInput
from tidewolf.core.settings import Numbers, Text
from tidewolf.core.types import NDArray
from tidewolf.experiments.building import build
from tidewolf.experiments.choice import Choice
from tidewolf.experiments.experiment import maker
from tidewolf.experiments.inline_graph import commodity_rows, links_of, network_rows
from tidewolf.experiments.keys import (
    NETWORK,
    Keys,
    key,
    kind_keys,
    kind_named,
    learner_keys,
    names_file,
    set_kinds,
)
from tidewolf.experiments.round_reader import RoundReader
from tidewolf.experiments.sizes import entries_of, require_modest, require_modest_learner
from tidewolf.experiments.toml import Document
from tidewolf.experiments.toml_tables import (
    Place,
    implied_kind,
    read_choice,
    read_settings,
    read_value,
)
from tidewolf.methods.base import Learner
from tidewolf.networks import Network

USUAL = Choice.of("Ensemble", {"experts": ["last"]})
"""Who decides where nobody is named."""
NO_FILES = "a request names no files: give the rows themselves"
DEEPEST = 24
"""Lists and objects within each other."""
MOST_VALUES = 1_000_000
"""Numbers, texts, lists and objects of a request."""
LONGEST_TEXT = 1000
"""Characters of a name, or another text."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x80-\x9f\ud800-\udfff]")
_WORDS = (
    (re.compile(r",? or (?:the name of a table|a column of the graph's file)"), ""),
    (re.compile(r"the name of (?:a table|a graph's file|a column of the graph's file), or "), ""),
    (re.compile(r" that a file can describe"), ""),
    (re.compile(r'a table with a kind, such as kind = ("\w+")'), r'an object such as {"kind": \1}'),
    (re.compile(r'a table such as \{ kind = "Simplex", n = 3 \}'), "an object with a kind"),
)
"""What sentences say of files, and what they say of requests."""


class Body(Document):
    """What a request says: places are the keys that lead to them."""

    def place(self, *path: str | int) -> str:
        return ", ".join(str(each + 1 if isinstance(each, int) else each) for each in path) or (
            self.name
        )

    def refused(self, sentence: str, *path: str | int) -> InvalidInput:
        for pattern, instead in _WORDS:
            sentence = pattern.sub(instead, sentence)
        return super().refused(sentence, *path)


@final
@dataclass(frozen=True)
class Inline:
    """A set, what its entries are called, and who decides, as a request describes them.

    Parameters
    ----------
    hard_set : Choice
        The set.
    names : tuple of str, default ()
        What its entries are called; empty: as the set says, or by their places.
    learner : Choice
        Who decides. By default Ensemble, which re-solves with the last round, too.
    rounds : int, optional
        How many rounds there will be. None: nobody knows.
    seed : int, default 0
        That of everything random in the learner.
    body : Body
        What the request says, for sentences.

    Examples
    --------
    >>> from tidewolf.experiments.inline import Inline
    >>> asked = Inline.of({"set": {"kind": "Simplex", "n": 2}, "names": ["bonds", "shares"]})
    >>> reader = asked.reader()
    >>> reader.names, asked.decider(reader).horizon
    (('bonds', 'shares'), None)
    """

    hard_set: Choice
    names: tuple[str, ...] = ()
    learner: Choice = USUAL
    rounds: int | None = None
    seed: int = 0
    body: Body = field(default=Body("the request", {}, {}), compare=False, repr=False)

    @classmethod
    def of(cls, data: Any) -> Inline:
        """What plain data says, as JSON gives it.

        Parameters
        ----------
        data : mapping
            `set`, and perhaps `names`, `rounds`, `seeds`, `caution` and `learners`, each of its
            kind; other keys are left alone.

        Returns
        -------
        Inline
            With everything read, and nothing built.

        Raises
        ------
        InvalidInput
            Where it says something that is not accepted: the sentence begins with the keys that
            lead there.
        """
        body = Body("the request", dict(data), {})
        hard_set = _set(body)
        require_modest(hard_set, Place(body, ("set",)))
        learner = _learner(body, _one(data.get("caution")))
        place = Place(body, ("learners", 0))
        require_modest_learner(learner.given, entries_of(hard_set), place)
        return cls(
            hard_set,
            tuple(data.get("names", ())),
            learner,
            data.get("rounds"),
            _one(data.get("seeds", 0)),
            body,
        )

    def reader(self) -> RoundReader:
        """The set, built, and who makes functions of rows on it.

        Returns
        -------
        RoundReader
            With the set `K`, its `names`, its `network` and `functions`.
        """
        with np.errstate(all="ignore"):  # sets refuse what is not finite
            return RoundReader.of_set(self.hard_set, Place(self.body, ("set",)), self.names)

    def decider(self, reader: RoundReader) -> Learner[Any]:
        """The learner, for the set of a reader.

        Parameters
        ----------
        reader : RoundReader
            As `reader` makes it.

        Returns
        -------
        Learner
            Its horizon is `rounds`, and its seed `seed`, unless its settings say otherwise.
        """
        known = learner_keys(self.learner.name)
        given = {"seed": self.seed, **self.learner.given}
        if self.rounds is not None:
            given.setdefault("horizon", self.rounds)
        with np.errstate(all="ignore"):
            learner: Learner[Any] = build(
                maker(self.learner, reader.K, reader.network),
                {name: value for name, value in given.items() if name in known},
                known,
                Place(self.body, ("learners", 0)),
                _no_table,
            )
        return learner


def require_plain(data: Any) -> None:
    """Refuse what no JSON says, or what is too deep or too much of it.

    Parameters
    ----------
    data : object
        Objects, lists, texts, numbers, true, false and null.

    Raises
    ------
    InvalidInput
        Where it is anything else, or there is too much.
    """
    left, waiting = MOST_VALUES, [(data, 0)]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, Mapping):
            items = list(value.values())
            for name in value:
                _require_text(name)
        elif isinstance(value, list):
            items = value
        else:
            _require_value(value)
            continue
        left -= len(items)
        if left < 0:
            raise InvalidInput(f"The request says too much: it has over {MOST_VALUES:,} values.")
        if depth >= DEEPEST:
            raise InvalidInput("The request is nested too deeply.")
        waiting += [(item, depth + 1) for item in items]


def _require_value(value: Any) -> None:
    if isinstance(value, str):
        _require_text(value)
    elif isinstance(value, bool) or value is None:
        return
    elif isinstance(value, int):
        if abs(value) > LARGEST_COUNT:
            raise InvalidInput(f"Whole numbers of a request go up to {LARGEST_COUNT}.")
    elif not isinstance(value, float):
        raise InvalidInput(f"A request says numbers, texts, lists and objects, not {shown(value)}.")
    elif not math.isfinite(value):
        raise InvalidInput(f"{value} is no finite number, and every number of a request is.")


def _require_text(value: Any) -> None:
    if not isinstance(value, str):
        raise InvalidInput(f"The keys of a request are texts, not {shown(value)}.")
    if len(value) > LONGEST_TEXT:
        raise InvalidInput(
            f"A text of the request has {len(value):,} characters; it may have {LONGEST_TEXT:,}."
        )
    if _CONTROL.search(value):
        raise InvalidInput(f"A text of the request has a control character: {value!a}.")


def _one(given: Any) -> Any:
    """A value, which may be given as a list of one."""
    return given[0] if isinstance(given, list) else given


# --- the set --------------------------------------------------------------------------------------


def _set(body: Body) -> Choice:
    table = body.data["set"]
    if _is_network(table):
        known = kind_keys(Network)
        rest = network_rows(
            {name: value for name, value in table.items() if name != "kind"}, body, ("set",)
        )
        choice = Choice.of(NETWORK, read_settings(body, ("set",), rest, known, "A network"))
    else:
        choice = read_choice(body, ("set",), _plain(table, body, ("set",)), set_kinds())
    _require_no_files(choice, body, ("set",))
    return choice


def _is_network(table: Mapping[str, Any]) -> bool:
    """Whether it is a graph and what goes over it: one flow is that, too."""
    if "kind" in table:
        return table["kind"] in (NETWORK, "FlowPolytope")
    return "graph" in table and bool(table.keys() & {"source", "target", "commodities"})


def _plain(table: Any, body: Body, path: tuple[str | int, ...]) -> Any:
    """The table of a set as a file would have it: links and commodities as lists, numbers of links
    in the order of links, bounds that are null infinite; and so in all sets within it.
    """
    if not isinstance(table, Mapping):
        return table
    plain = dict(table)
    if "graph" in plain:
        kind = plain.get("kind", implied_kind(plain, set_kinds()))
        named = isinstance(kind, str) and kind in set_kinds()
        known = kind_keys(set_kinds()[kind]) if named else {}
        links, columns = links_of(plain["graph"], body, (*path, "graph"), _columns(plain, known))
        if plain.get("directed") is False:
            columns = {name: numbers * 2 for name, numbers in columns.items()}
        plain |= {"graph": links, **columns}
    if "commodities" in plain:
        plain["commodities"] = commodity_rows(plain["commodities"], body, (*path, "commodities"))
    if isinstance(plain.get("bounds"), list):
        plain["bounds"] = _bounds(plain["bounds"])
    if "K" in plain:
        plain["K"] = _plain(plain["K"], body, (*path, "K"))
    if isinstance(plain.get("parts"), list):
        plain["parts"] = [
            _plain(part, body, (*path, "parts", i)) for i, part in enumerate(plain["parts"])
        ]
    return plain


def _columns(table: Mapping[str, Any], known: Keys) -> dict[str, str]:
    """The settings that are numbers of links by the name that links have for them."""
    return {
        name: value
        for name, value in table.items()
        if isinstance(value, str) and name in known and isinstance(known[name].check, Numbers)
    }


def _bounds(given: Sequence[Any]) -> list[Any]:
    """Pairs of bounds, infinite where there is none."""
    if len(given) == 2 and not any(isinstance(each, list) for each in given):
        lower, upper = given
        return [-math.inf if lower is None else lower, math.inf if upper is None else upper]
    return [_bounds(pair) if isinstance(pair, list) and len(pair) == 2 else pair for pair in given]


def _require_no_files(choice: Choice, body: Body, path: tuple[str | int, ...]) -> None:
    known = kind_keys(kind_named(choice.name))
    for name, value in choice.settings:
        if names_file(known, name, value):
            raise body.refused(f"{NO_FILES}, not {shown(value)}.", *path, name)
        for i, part in enumerate(value if isinstance(value, tuple) else (value,)):
            if isinstance(part, Choice):
                within = (name, i) if isinstance(value, tuple) else (name,)
                _require_no_files(part, body, (*path, *within))


def _no_table(path: Path, place: Place) -> NDArray:
    raise InvalidInput(f"{place.words()}{NO_FILES}.")


# --- the learner ----------------------------------------------------------------------------------


def _learner(body: Body, caution: float | None) -> Choice:
    """The only learner, with the caution that is said beside it."""
    choice = _named_learner(body) if "learners" in body.data else USUAL
    if caution is None or "caution" not in learner_keys(choice.name):
        return choice
    return Choice.of(choice.name, {"caution": caution, **choice.given})


def _named_learner(body: Body) -> Choice:
    (entry,) = body.data["learners"]
    table = {"name": entry} if isinstance(entry, str) else entry
    if "name" not in table:
        raise body.refused('a learner has a name, such as {"name": "Ensemble"}.', "learners", 0)
    path = ("learners", 0)
    name = read_value(body, (*path, "name"), table["name"], key("name", Text()))
    try:
        known = learner_keys(name)
    except InvalidInput as error:
        raise body.refused(str(error), *path, "name") from None
    rest = {each: value for each, value in table.items() if each != "name"}
    given = read_settings(body, path, rest, known, name)
    for each, value in given.items():
        if names_file(known, each, value):
            raise body.refused(f"{NO_FILES}, not {shown(value)}.", *path, each)
    return Choice.of(name, given)
