"""What the constants of the three theorems share: a starting point, and a regime in which it does
not move.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple, Self

from tidewolf.core.arrays import as_own, as_point, like, norm
from tidewolf.core.errors import InvalidInput, NotAMember, WrongType
from tidewolf.core.oracle import HasLMO, as_set
from tidewolf.core.settings import Check, Numbers
from tidewolf.core.types import Array
from tidewolf.core.values import Value
from tidewolf.methods.clock import EpochState, Restarting
from tidewolf.methods.projected import AsPrinted
from tidewolf.methods.settings import warn_of
from tidewolf.methods.steps.thresholds import TheoremSteps, frozen_at, frozen_sentence
from tidewolf.sets.base import membership_tolerance


class Assumed(NamedTuple):
    """What a theorem assumes of the functions: their slopes and, for bandits, their sizes."""

    G_f: float
    G_g: float
    M_f: float = 0.0
    M_g: float = 0.0


@dataclass(frozen=True, eq=False, repr=False)
class PaperConstants(Value, ABC):
    """The constants of a theorem of Garber & Kretzu 2024, for a learner that has its other
    settings; made by its `theorem`.
    """

    start: Annotated[
        Array | None, Numbers("Where to start, a member of the set. None: the center.")
    ] = None

    def require(self, K: HasLMO, fields: dict[str, Any]) -> None:
        """Refuse settings of a learner that are not the theorem's: it needs all that it speaks of,
        and leaves no choice of a budget or of blocks.
        """
        for name, value in fields.items():
            if value is None and name.endswith(("horizon", "lipschitz", "size")):
                raise InvalidInput(
                    f"The paper's constants need {name}, and none was given.", setting=name
                )
            if value is not None and name in ("calls_per_round", "block"):
                raise InvalidInput(
                    f"The paper's constants leave no choice of {name}: with them it is None.",
                    setting=name,
                )
        self.require_start(K, fields["horizon"])

    def require_start(self, K: HasLMO, T: int) -> None:
        """Refuse a start that is no member."""
        if self.start is not None and (infeasibility := self._infeasibility(K)) > 0.0:
            raise NotAMember(
                f"The starting point is not a member of the set: its excess is "
                f"{infeasibility:.3g}.",
                setting="start",
            )

    def _infeasibility(self, K: HasLMO) -> float:
        """Of the start, 0 within rounding."""
        infeasibility = K.infeasibility(self.start)
        return infeasibility if infeasibility > membership_tolerance(self.start, K.radius) else 0.0

    def distance(self, K: HasLMO) -> float:
        """From the center to the start."""
        return 0.0 if self.start is None else norm(self.start - K.center)

    def frozen(self, K: HasLMO, T: int) -> bool:
        """Whether the point never leaves its start within T rounds."""
        return K.radius > 0.0 and frozen_at(T, K.radius, self.distance(K))

    @abstractmethod
    def concerns(self, K: Any, T: int, assumed: Assumed) -> tuple[str, ...]:
        """Sentences on what the constants cannot do within T rounds, with the horizon from which on
        they can.
        """

    def frozen_concerns(self, K: HasLMO, T: int) -> list[str]:
        """The sentence that it does not, and from which horizon on it does."""
        return [frozen_sentence(T, K.radius, self.distance(K))] if self.frozen(K, T) else []

    def projection(self, K: HasLMO, T: int) -> AsPrinted:
        """|x - y|^2 <= 3 eps; 0 for a set of one point and for T = 1 only, where any will do."""
        return AsPrinted(self.tolerance2(K, T) or 1.0)

    def tolerance2(self, K: Any, T: int) -> float:
        """3 eps."""
        return TheoremSteps(T, K.radius, 1.0).tol


def own_start(K: Any, start: Any, owner: str) -> Array | None:
    """A copy of where to start, an array like the points of the set; None for the center."""
    as_set(K, owner)
    if start is None:
        return None
    what = "The starting point"
    return as_own(like(as_point(start, K.shape, what), K.center), what)


@dataclass(frozen=True)
class Constants(Check):
    """The constants of a theorem, which are of one kind for a learner."""

    kind: type = PaperConstants

    words: ClassVar[str] = "nothing that a file can say"

    def __call__(self, value: Any, what: str) -> Any:
        if not isinstance(value, self.kind):
            raise WrongType(
                f"{what} must be what its `theorem` gives, a {self.kind.__name__}, not {value!r}."
            )
        return value

    def read(self, value: Any) -> None:
        """Nothing: a theorem is named in Python alone."""


class WithConstants(Restarting[EpochState]):
    """Abstract: learners that can play with the constants of their theorem, too."""

    calls_per_round: float | None
    constants: PaperConstants | None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.constants is not None:
            self.constants.require(self.K, self.fields())
        elif self.calls_per_round is None:
            raise InvalidInput(
                f"calls_per_round of {type(self).__name__} is None with the paper's constants "
                "only; give a number of oracle calls a round.",
                setting="calls_per_round",
            )

    @property
    def assumed(self) -> Assumed:
        """The slopes and sizes that were given; zeros where none was."""
        return Assumed(*self.given_slopes.initial)

    @property
    def first_point(self) -> Array | None:
        """Where the run starts; None for the center."""
        return None if self.constants is None else self.constants.start

    @property
    def first_reach(self) -> float:
        """How far members are at most from where the run starts."""
        if self.constants is None:
            return self.K.radius
        return min(self.K.diameter, self.K.radius + self.constants.distance(self.K))

    @cached_property
    def concerns(self) -> tuple[str, ...]:
        """Sentences on what the paper's constants, if it has them, cannot do within its horizon."""
        if self.constants is None or self.horizon is None:
            return ()
        return self.constants.concerns(self.K, self.horizon, self.assumed)

    def warn(self) -> None:
        """Say the concerns as one warning, where the caller of `theorem` stands."""
        if self.constants is not None and self.horizon is not None:
            frozen = self.constants.frozen(self.K, self.horizon)
            warn_of(self.concerns, frozen, type(self).__name__)

    def notes(self, state: EpochState) -> tuple[str, ...]:
        return (*self.concerns, *super().notes(state))


class WithTheorem(WithConstants[EpochState]):
    """Abstract: those of them whose theorem speaks of slopes alone."""

    constants_type: ClassVar[type[PaperConstants]]

    @classmethod
    def theorem(
        cls,
        K: HasLMO,
        *,
        horizon: int,
        loss_lipschitz: float,
        constraint_lipschitz: float,
        start: Array | None = None,
    ) -> Self:
        """The paper's constants; warns if the horizon is too short for them to move the point or
        to guarantee anything.

        Parameters
        ----------
        K : HasLMO
            The set that every played point belongs to.
        horizon : int
            How many rounds will be played.
        loss_lipschitz, constraint_lipschitz : float
            The largest slopes that losses and constraints may have; steeper ones are refused.
        start : array, optional
            Where to start, a member of the set. None: the center.

        Returns
        -------
        Learner
            One with these constants.
        """
        make: Any = cls
        learner: Self = make(
            K,
            horizon=horizon,
            calls_per_round=None,
            loss_lipschitz=loss_lipschitz,
            constraint_lipschitz=constraint_lipschitz,
            constants=cls.constants_type(own_start(K, start, cls.__name__)),
        )
        learner.warn()
        return learner
