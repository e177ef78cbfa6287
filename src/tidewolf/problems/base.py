"""A problem: a hard set, and a stream of losses and constraints on it.

    choose x_t in K,  then see f_t and g_t:
        keep  sum_t f_t(x_t)  low  and  sum_t max(0, g_t(x_t))  small

A builder is a function of the number of rounds and the seed whose name is the problem's name and
whose docstring opens with one sentence about it. `rounds=None` means as many as the problem usually
has; the first n rounds never depend on how many were asked for.

Records of streams are not part of the package. They are read from the folder in the environment
variable TIDEWOLF_DATA, else from ../shared/data as seen from the current folder.
"""

import hashlib
import os
import zipfile
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeAlias, final

import numpy as np

from tidewolf.core import batch, oracle, settings, values
from tidewolf.core.errors import InvalidInput, WrongShape, WrongType
from tidewolf.core.types import Floats, NDArray, Shape
from tidewolf.methods.budget import Budgets
from tidewolf.sets.base import ConvexSet

Rounds: TypeAlias = Annotated[int | None, settings.Count()]
RandomSeed: TypeAlias = Annotated[int, settings.Seed()]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Problem(values.Value):
    """A set K and a stream on it.

    Parameters
    ----------
    name : str
        What it is called, such as "routing".
    K : ConvexSet
        The hard set: every decision is in it.
    stream : Stream
        The losses and constraints, on points of the set's shape.
    title : str
        What is decided, under which limits: one sentence.
    labels : sequence of str, default ()
        What each coordinate of a point is called.
    period : int, optional
        The rounds after which patterns repeat. None: unknown. Unit: rounds.
    network : Network, optional
        The network that is decided on (`tidewolf.networks.Network`). None: it is none.
    demands : array, optional
        What each commodity of the network sends in each round, of shape (rounds, commodities).
        None: what the network says, in every round.
    notes : sequence of str, default ()
        Notes in sentences: links that are not used, gaps that were filled.
    node_places : mapping, default {}
        The longitude and latitude of nodes by name, or their x and y: pages draw them there.
    budgets : tuple of Budget, default ()
        The totals and periods of the budgets of the stream, for learners.

    Examples
    --------
    >>> stream = tw.Stream(tw.functions.Linear([[1.0, 2.0]]), tw.functions.Capacity([[0.5, 1.0]]))
    >>> problem = tw.problems.Problem("mine", tw.sets.Simplex(2), stream, "Shares of two roads.")
    >>> len(problem), problem.shape
    (1, (2,))
    """

    name: Annotated[str, settings.Text()]
    K: ConvexSet
    stream: batch.Stream
    title: Annotated[str, settings.Text()]
    labels: Annotated[tuple[str, ...], settings.NAMES] = ()
    period: Annotated[int | None, settings.Count()] = None
    network: Any = None
    demands: Any = None
    notes: tuple[str, ...] = ()
    node_places: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    budgets: Budgets = ()

    def _complete(self) -> None:
        oracle.as_set(self.K, f"The problem {self.name}")
        self._require(isinstance(self.stream, batch.Stream), "stream", "be a Stream", WrongType)
        self._require_shape("stream", self.K.shape)
        fits = not self.labels or (len(self.labels),) == self.K.shape
        due = f"be one for each entry of points of shape {self.K.shape}, not {len(self.labels)}"
        self._require(fits, "labels", due, WrongShape)

    @property
    def shape(self) -> Shape:
        """The shape of a point."""
        return self.K.shape

    def __len__(self) -> int:
        return len(self.stream)


def as_rounds(rounds: int | None, usual: int, numbers: int) -> int:
    """How many rounds are made, `usual` for None; refused before anything is made where `numbers` a
    round do not fit into memory.
    """
    if rounds is None:
        return usual
    needed, there = 8 * numbers * rounds, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > there:
        memory = f"{needed / 1e9:.3g} GB of memory at least, and there are {there / 1e9:.3g}"
        raise InvalidInput(f"{rounds} rounds take {memory}; ask for fewer.", setting="rounds")
    return rounds


def wave(low: float, high: float, turns: Floats) -> Floats:
    """Between two numbers and back once per turn, from the high one on."""
    return low + (high - low) * (1 + np.cos(2 * np.pi * turns)) / 2


class Builder(Protocol):
    """What makes a problem: a function of the number of rounds and the seed.

    Its name is the problem's name, and its docstring opens with one sentence about it.

    Examples
    --------
    >>> def coin(rounds=None, seed=0):
    ...     '''Shares of two sides of a coin.'''
    ...     costs = np.random.default_rng(seed).normal(size=(rounds or 100, 2))
    ...     limits = tw.functions.Capacity(np.full(costs.shape, 0.8))
    ...     stream = tw.Stream(tw.functions.Linear(costs), limits)
    ...     return tw.problems.Problem("coin", tw.sets.Simplex(2), stream, "Shares of two sides.")
    >>> build: tw.problems.Builder = coin
    >>> len(build(rounds=10))
    10
    """

    @property
    def __name__(self) -> str: ...

    @abstractmethod
    def __call__(self, rounds: int | None = None, seed: int = 0) -> Problem: ...


# --- records --------------------------------------------------------------------------------------

VARIABLE = "TIDEWOLF_DATA"
# What generators make is known again by their settings, seed and this number: raise it with any
# change of what one of them makes.
GENERATOR_VERSION = 1
# The file that each recorded problem is read from.
RECORDS = {
    "abilene": "abilene_hourly.npz", "carbon": "carbon_ci_u16.npz", "freeway": "losloop_u8.npz",
    "meta": "meta_pod_a.npz", **dict.fromkeys(("geant", "uunet", "zoo"), "zoo_edges.csv.gz"),
}  # fmt: skip


def data_folder() -> Path:
    """The folder with the recorded streams, whether it exists or not."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else Path.cwd().parent / "shared" / "data"


def record(file: str) -> Path:
    path = data_folder() / file
    if not path.is_file():
        cure = f"set {VARIABLE} to the folder that holds it"
        raise InvalidInput(f"The recorded stream {file} is not in {path.parent}; {cure}.")
    return path


def origin(problem: str) -> str:
    """What tells the numbers of a problem from others of the same settings and seed: the bytes of
    its record, or the version of the generators.
    """
    if problem not in RECORDS:
        return f"generator {GENERATOR_VERSION}"
    return hashlib.sha256(record(RECORDS[problem]).read_bytes()).hexdigest()


@contextmanager
def reading(file: str) -> Iterator[Path]:
    path = record(file)
    try:
        yield path
    except (OSError, EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        cure = f"set {VARIABLE} to a folder with an intact copy"
        raise InvalidInput(f"{path} cannot be read ({error}); {cure}.") from error


def recorded(file: str, *names: str) -> list[NDArray]:
    with reading(file) as path, np.load(path) as arrays:
        return [arrays[name] for name in names]


def first_rounds(problem: str, rounds: int | None, *names: str) -> tuple[slice, list[NDArray]]:
    """The first `rounds` of the record of a problem, all for None, and its arrays of these names,
    of which the first has a row per round.
    """
    arrays = recorded(RECORDS[problem], *names)
    length = len(arrays[0])
    if rounds is not None and rounds > length:
        raise InvalidInput(f"The record of {problem} has {length} rounds.", setting="rounds")
    return slice(0, length if rounds is None else rounds), arrays
