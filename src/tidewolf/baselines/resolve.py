"""Re-solving with the last round's data, or older, and some headroom: what a practitioner would
try first.

    x_{t+1}  =  argmin { f_t(x) : x in K, g_t(x) <= -h },
    if no point keeps the limit, among those that violation it least

It is `tidewolf.experts.Resolve` (experts/resolve.py), played alone. It forgets every round
but that one, and guarantees nothing: costs that turn round every time mislead it every time.
Losses and limits that are made of linear pieces, sets with a linear description; or any set, by
column generation, with at most one oracle call per round.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple, final

from tidewolf.core import round_info, settings
from tidewolf.core.feedback import Arrival, FullInformation
from tidewolf.core.types import Array
from tidewolf.experts import resolve
from tidewolf.hindsight.best_point import BestPoint, require_program
from tidewolf.methods.available import entries_out, restricted, uses
from tidewolf.methods.base import Bound, Learner, Record
from tidewolf.methods.late import Deferred, KeepsPending, Overrides, in_order, next_round, without
from tidewolf.methods.settings import HardSetK
from tidewolf.projection.active import start_active


class State(NamedTuple):
    t: int
    x: Array
    advice: resolve.ResolveState
    calls: int = 0
    solves: int = 0  # linear programs solved so far
    distance: float = 0.0
    own: Array | None = None  # what it would play if no entries were out in the coming round
    pending: tuple[Deferred, ...] = ()
    lost: int = 0
    overrides: Overrides = Overrides()


@final
@dataclass(frozen=True, eq=False, repr=False)
class Resolve(KeepsPending[State]):
    """Re-solve a linear program every round, with the data of the round before.

    Parameters
    ----------
    K : HasLMO
        The hard constraints: every decision is a point of this set.
    horizon : int, optional
        Ignored. Unit: rounds.
    headroom : float, default 0.0
        The headroom below each limit, as a multiple of its usual drop from one round to the
        next.
    data : str or int, default 'last'
        Which functions it solves with: "last", the newest; a number, those of so many rounds
        ago; a duration such as "1d", those of the round nearest to that time ago; "forecast",
        those that are predicted for the next round.
    columns : bool, default False
        Whether the set is touched through its oracle alone, by column generation; otherwise it
        has a linear description.

    Examples
    --------
    Three options, the cheapest of which may take at most half:

    >>> K = tw.sets.Simplex(3)
    >>> losses = tw.functions.Linear(np.tile([2.0, 1.0, 0.0], (5, 1)))
    >>> limits = tw.functions.Affine(np.tile([0.0, 0.0, 1.0], (5, 1)), np.full(5, 0.5))
    >>> run = tw.run(tw.baselines.Resolve(K), tw.Stream(losses, limits))
    >>> np.round(run.learner.act(run.final_state), 1)
    array([0. , 0.5, 0.5])
    """

    needs: ClassVar = FullInformation
    state_type: ClassVar = State
    anytime: ClassVar = True

    K: HardSetK
    horizon: Annotated[int | None, settings.Count()] = None
    headroom: Annotated[float, settings.Number(least=0.0)] = 0.0
    data: Annotated[str | int, resolve.RoundsBack()] = "last"
    columns: Annotated[bool, settings.Flag()] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.columns:
            BestPoint(self.K, "Resolve")

    def start(self) -> State:
        return State(0, self.K.center, self._adviser.start(self.K))

    def act(self, state: State) -> Array:
        return state.x

    def rounds_left(self, state: State) -> int:
        return 1

    def with_info(self, state: State, info: round_info.RoundInfo) -> State:
        out, state = entries_out(self.K, info), self._with_all(state)
        before = state
        if self._adviser.waits or (out is not None and uses(state.x, out)):
            state = self._advised(state, info)
        if out is not None and uses(state.x, out):
            found = restricted(self.K, (start_active(self.K, state.x),), out, 0.0 * state.x)
            state = state._replace(x=found.points[0], calls=state.calls + found.calls)
        return state if out is None or state.x is before.x else state._replace(own=before.x)

    def _with_all(self, state: State) -> State:
        return state if state.own is None else state._replace(x=state.own, own=None)

    def defer(self, state: State) -> State:
        waiting = Deferred(next_round(state), state.x)
        state = self._with_all(state)._replace(pending=(*state.pending, waiting))
        return state if self._adviser.waits else self._advised(state, None)

    def on_feedback(self, state: State, arrivals: Sequence[Arrival]) -> State:
        kept, pending, overrides = state.advice, state.pending, state.overrides
        for arrival in in_order(arrivals):
            feedback = require_program(arrival.feedback, self.K, 1, "Resolve")
            own, _ = without(state, arrival.round)
            kept = self._adviser.observe_round(
                self.K, kept, feedback, state.x if own is None else own.x, arrival.round
            )
            pending = tuple(one for one in pending if one.round != arrival.round)
            overrides = overrides.and_of(arrival)
        t = state.t + len(arrivals)
        state = self._with_all(state)
        state = state._replace(t=t, advice=kept, pending=pending, overrides=overrides)
        return state if self._adviser.waits else self._advised(state, None)

    def _advised(self, state: State, info: round_info.RoundInfo | None) -> State:
        found = self._adviser.propose(self.K, state.advice, info, next_round(state), 1, ())
        (x,) = found.points
        return state._replace(
            x=state.x if x is None else x,
            advice=found.state,
            calls=state.calls + found.calls,
            solves=state.solves + found.solves,
        )

    @cached_property
    def _adviser(self) -> resolve.Resolve:
        return resolve.Resolve(self.data, (self.headroom,), columns=self.columns)

    def bound(self, record: Record) -> Bound:
        return Bound(reason="The best point of the last round guarantees nothing for the next.")

    def notes(self, state: State) -> tuple[str, ...]:
        solves = "It solves a linear program every round and asks no oracle."
        if self.columns:
            solves = "It solves linear programs in the weights of vertices every round."
        return (solves,)

    @classmethod
    def examples(cls, K: Any, horizon: int) -> Sequence[Learner[Any]]:
        return (cls(K), cls(K, horizon=horizon, headroom=2.0), cls(K, columns=True))
