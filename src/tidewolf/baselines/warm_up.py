"""The best point of a warm-up window, played ever after: what a practitioner would try next.

    x_t  =  the center of K   in rounds 1 to w
    x_t  =  argmin { sum_{s<=w} f_s(x) : x in K, g_s(x) <= 0 for every s <= w }         from then on

if no point satisfies every constraint of the window, among those whose worst violation is least. w
is `window`, or a twentieth of the horizon. If rounds were drawn from one distribution it would be
near the best fixed point; as they need not be, it guarantees nothing. Linear losses, limits made of
half-spaces, sets with a linear description. The window's limits are kept until it ends.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple, final

from tidewolf.core.feedback import FullInformation
from tidewolf.core.settings import Count
from tidewolf.core.types import Array
from tidewolf.functions.combined import Limits
from tidewolf.hindsight.best_point import BestPoint, require_program
from tidewolf.methods import clock, settings
from tidewolf.methods.base import Bound, Learner, Record
from tidewolf.sets.base import ConvexSet

SHARE = 20  # A window is this part of the horizon.
# How many rounds are taken at once when nothing changes any more; some number must be said.
_AHEAD = 256


class State(NamedTuple):
    t: int
    x: Array
    losses: Limits  # Those of the window, and `limits` too, until it ends.
    limits: Limits
    calls: int = 0
    distance: float = 0.0


@final
@dataclass(frozen=True, eq=False, repr=False)
class WarmUp(Learner[State]):
    """Solve one linear program for the first rounds and play its solution ever after.

    Parameters
    ----------
    K : ConvexSet
        The set that every played point belongs to; it has a linear description.
    horizon : int, optional
        How many rounds will be played; a twentieth of them is the window if none is given.
        None: 256. Unit: rounds.
    window : int, optional
        How many rounds it learns from. None: a twentieth of the horizon. Unit: rounds.

    Examples
    --------
    Three options, the cheapest of which may take at most half:

    >>> K = tw.sets.Simplex(3)
    >>> losses = tw.functions.Linear(np.tile([2.0, 1.0, 0.0], (20, 1)))
    >>> limits = tw.functions.Affine(np.tile([0.0, 0.0, 1.0], (20, 1)), np.full(20, 0.5))
    >>> run = tw.run(tw.baselines.WarmUp(K, window=10), tw.Stream(losses, limits))
    >>> np.round(run.learner.act(run.final_state), 1)
    array([0. , 0.5, 0.5])
    """

    needs: ClassVar = FullInformation
    state_type: ClassVar = State
    anytime: ClassVar = True

    K: Annotated[ConvexSet, settings.HardSet(require=BestPoint)]
    horizon: Annotated[int | None, Count()] = None
    window: Annotated[int | None, Count()] = None

    def start(self) -> State:
        return State(0, self.K.center, Limits(), Limits())

    def act(self, state: State) -> Array:
        return state.x

    def rounds_left(self, state: State) -> int:
        since = state.t - self._window
        return -since if since < 0 else _AHEAD - since % _AHEAD

    def update(self, state: State, feedback: FullInformation) -> State:
        require_program(feedback, self.K, self.rounds_left(state), "WarmUp")
        t = state.t + feedback.rounds
        if state.t >= self._window:
            return state._replace(t=t)
        if t < self._window:
            return state._replace(
                t=t,
                losses=state.losses.and_then(feedback.losses),
                limits=state.limits.and_then(feedback.constraints),
            )
        losses = state.losses.with_last(feedback.losses).whole()
        limits = state.limits.with_last(feedback.constraints).whole()
        return State(t, BestPoint(self.K, "WarmUp")(losses, limits), Limits(), Limits())

    @cached_property
    def _window(self) -> int:
        return self.window or max(1, round((self.horizon or clock.FIRST_HORIZON) / SHARE))

    def bound(self, record: Record) -> Bound:
        return Bound(reason="The best point of the first rounds guarantees nothing for the others.")

    def notes(self, state: State) -> tuple[str, ...]:
        return (f"It learns from the first {self._window} rounds and plays one point ever after.",)

    @classmethod
    def examples(cls, K: Any, horizon: int) -> Sequence[Learner[Any]]:
        return (cls(K, horizon=horizon, window=5), cls(K, horizon=horizon), cls(K))
