"""Choices of a file: a set, a batch of functions, a problem or a learner by name, with settings.

Lists are kept as tuples and tables as choices or pairs, so that a choice is frozen and hashable.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from tidewolf.core.arguments import as_items, as_text, shown
from tidewolf.core.errors import WrongType


@final
@dataclass(frozen=True)
class Choice:
    """A set, a function, a problem or a learner by name, with what is set of it.

    Parameters
    ----------
    name : str
        What is chosen, as `tidewolf list` calls it.
    settings : tuple of tuple, default ()
        Pairs of a key and its value: a number, text, True or False, a list of those, or a choice
        where a set is made of sets. `Choice.of` takes a mapping in their place.

    Examples
    --------
    >>> tw.experiments.Choice.of("CappedSimplex", {"n": 4, "cap": 0.5}).given
    {'n': 4, 'cap': 0.5}
    """

    name: str
    settings: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        as_text(self.name, "The name of what is chosen")
        pairs = as_items(self.settings, f"The settings of {self.name}", '[("caution", 10.0)]')
        object.__setattr__(self, "settings", tuple(as_pair(self.name, pair) for pair in pairs))

    @classmethod
    def of(cls, name: str, given: Mapping[str, Any]) -> Choice:
        """The choice with settings from a mapping.

        Parameters
        ----------
        name : str
            What is chosen.
        given : mapping
            The settings by key.

        Returns
        -------
        Choice
            The same as a frozen value.
        """
        if not isinstance(given, Mapping):
            raise WrongType(
                f"The settings of {shown(name)} must be a mapping from their names, not "
                f"{shown(given)}."
            )
        return cls(name, tuple(given.items()))

    @property
    def given(self) -> dict[str, Any]:
        """The settings by name."""
        return dict(self.settings)

    def table(self, key: str = "kind") -> dict[str, Any]:
        """What a file says of it: its name under `key`, then its settings."""
        return {key: self.name, **{name: _table_of(value) for name, value in self.settings}}


def as_pair(owner: str, pair: Any) -> tuple[str, Any]:
    """A setting's name and value, frozen; what no file could say is refused."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise WrongType(f"A setting of {owner} is a name and its value, not {shown(pair)}.")
    value = freeze(pair[1])
    if not sayable(value):
        raise WrongType(
            f"{pair[0]} of {owner} must be a number, True or False, text, or a list of those, "
            f"not {shown(pair[1])}."
        )
    return as_text(pair[0], f"The name of a setting of {owner}"), value


def freeze(value: Any) -> Any:
    """Lists as tuples and mappings as pairs, all the way down."""
    if isinstance(value, Mapping):
        value = list(value.items())
    return tuple(map(freeze, value)) if isinstance(value, list | tuple) else value


def sayable(value: Any) -> bool:
    """Whether a file can say a frozen value."""
    if isinstance(value, tuple):
        return all(map(sayable, value))
    number = isinstance(value, float) and not math.isnan(value)
    return number or isinstance(value, bool | int | str | Choice)


def _table_of(value: Any) -> Any:
    if isinstance(value, Choice):
        return value.table()
    return [_table_of(item) for item in value] if isinstance(value, tuple) else value
