"""Ensemble: mix many experts that share one dual state; the default learner.

The core (core.py) feeds every expert one gradient s at the point x = sum_i p_i z_i that was played.
For every expert and every sequence u_t in K that is feasible, by convexity,

    V sum (f_t(x_t) - f_t(u_t)) + sum w_t g_t^+(x_t)  <=  A_i + sum <s_t, z_i - u_t>,
    A_i = sum <s_t, x_t - z_i>                                                 (one dual state)

- *descent*, one expert for each step scale k: y <- ball(y - k eta s), z the member near y;
- *context*, one expert for a feature map phi: a descent W_j for each cell j, fed phi_j s,
  z = sum_j phi_j W_j, for policies u_t = sum_j phi_tj U_j;
- *restarts*, descents that begin anew at dyadic times (experts/restarts.py);
- *advice*, points from elsewhere (experts). With u_t = z_i, feasible or not:
  V sum (f_t(x_t) - f_t(z_i)) + sum w_t (g_t^+(x_t) - g_t^+(z_i)) <= A_i             (guard).

p is by AdaHedge on l_i = <s, z_i - x> (methods/steps/hedge.py), so A_i <= 2 Delta for all i; an
expert that is absent in a round has l_i = 0 there. Bounds of a run, against fixed points and
against policies, are those of methods/certificate.py.

Losses that declare their curvature (exp(-alpha f) concave) are mixed by values: with
L(z) = V f_t(z) + w g_t^+(z), l_i = L(z_i) - L(x), each expert is fed the gradient of L at its own
z_i, A_i = sum (L(x_t) - L(z_i)), and eta <= alpha/V: rounds without a violation have no gap, and
the run loses at most ln(1/q_i)/alpha to expert i, q its prior: small steps, and staying, have most
of it. The violation bound holds for values, too:
V (f(x) - f(z)) + V <grad f(z), z - u> >= V <grad f(z), x - u>, so that rounds add up as before.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, final

import numpy as np

from tidewolf.core import arguments, arrays, batch, errors, oracle
from tidewolf.core.feedback import FirstOrder, FullInformation
from tidewolf.core.settings import Check, Magnitude
from tidewolf.core.types import Floats
from tidewolf.experts import (
    Adviser,
    Context,
    Leader,
    Named,
    Resolve,
    Restarts,
    Season,
    Static,
    context,
)
from tidewolf.learners.core import Core
from tidewolf.learners.state import State
from tidewolf.methods import settings
from tidewolf.methods.base import Bound, Learner, Record, for_what_was_played
from tidewolf.methods.capabilities import Expert, Guard, Proposal

StepScales = Annotated[tuple[float, ...], settings.Numbers(each=Magnitude(), distinct=True)]
# Experts in files.
BY_WORD: dict[str, type[Adviser | Restarts]] = {
    "leader": Leader,
    "static": Static,
    "restarts": Restarts,
}
STAYING = 0.9  # The prior of an expert that stays, where losses declare their curvature.


@dataclass(frozen=True)
class ExpertsSetting(Check):
    """Advisers and at most one context; a string names points that are given with the round.

    In a file, "last", "forecast", a duration or a number of rounds is the data of a `Resolve`,
    "leader" is `Leader()`, "static" is `Static()`, "restarts" is `Restarts()`, and any other string
    is a name.
    """

    words: ClassVar[str] = 'a list such as ["last", "1d"]'

    def __call__(self, value: Any, what: str) -> tuple[Adviser | Context | Restarts, ...]:
        if isinstance(value, Adviser | Context | Restarts):
            value = (value,)
        given = arguments.as_items(value, what, "[tw.experts.Resolve()]")
        experts = [Named(one) if isinstance(one, str) else one for one in given]
        for one in experts:
            if not isinstance(one, Adviser | Context | Restarts):
                raise errors.WrongType(
                    f"{what} must be advisers such as experts.Resolve(), names of points that are "
                    "given with the round, experts.Restarts(), or a context such as "
                    f"experts.Season(96), not {arguments.shown(one)}."
                )
        for kind, word in ((Context, "context"), (Restarts, "Restarts")):
            own = [one for one in experts if isinstance(one, kind)]
            if len(own) > 1:
                raise errors.InvalidInput(
                    f"{what} may hold one {word}, not {len(own)}: {own[0]} and {own[1]}."
                )
        return tuple(experts)

    def read(self, value: Any) -> tuple[int | str, ...] | None:
        plain = isinstance(value, list) and all(type(item) in (int, str) for item in value)
        return tuple(value) if plain else None

    def build(self, value: Any) -> tuple[Adviser | Restarts, ...]:
        return tuple(map(_adviser, value))


def _adviser(item: Any) -> Any:
    if isinstance(item, str) and item in BY_WORD:
        return BY_WORD[item]()
    if isinstance(item, str) and item not in ("last", "forecast") and not context.is_duration(item):
        return Named(item)
    return Resolve(item) if isinstance(item, int | str) else item


class EnsembleState(State):
    __slots__ = ()


@final
@settings.takes_start
@dataclass(frozen=True, eq=False, repr=False)
class Ensemble(Core):
    """Mix descents at several step sizes with your experts: the learner to start with.

    Parameters
    ----------
    K : HasLMO
        The hard constraints: every decision is a point of this set.
    horizon : int, optional
        The number of rounds T; only a guarantee needs it. None: the anytime version, which
        never restarts and loses almost nothing. Unit: rounds.
    caution : float, default 10.0
        The weight of violations against losses: larger values violate constraints less and cost
        more.
    calls_per_round : float, default 1.0
        The most oracle calls per round, on average over the rounds so far; unspent calls are
        kept. "auto": as many as cost about as much as the rest of a round, by the kind of set:
        4 on flows, 2 on simplices, else 1. Unit: oracle calls per round.
    tolerance : float, optional
        The squared distance of the played point from its infeasible iterate that projections
        aim at, as a share of radius^2. None: 1e-3, or 1e-3 calls_per_round^(-6/5) with more
        than one call per round.
    loss_lipschitz : float, optional
        The Lipschitz constant of the losses; steeper losses are refused. None: estimated from
        the feedback, and there is no guarantee before the run.
    constraint_lipschitz : float, optional
        The Lipschitz constant of the constraints; steeper ones are refused. None: estimated
        from the feedback, and there is no guarantee before the run.
    start_at : array, optional
        The first decision, such as what is installed now; may be given as `start`. None: the
        set's center.
    max_move : float, optional
        The largest move from what was played in the round before, as half the sum of the
        absolute changes of all entries. None: no cap.
    per_constraint : bool, default False
        If True, each constraint of a round has its own weight and its own bound on the
        violation; if False, one weight for the largest violation.
    budgets : tuple of Budget, default ()
        The budgets whose spend every round gives, such as `tw.Budget("usd", total=90,
        per="1d")`. A stream may have budgets that are not declared here.
    target_violation : float, optional
        The violation per round that is acceptable, on average over the rounds, in place of
        caution. None: `caution` weighs violations.
    step_scales : tuple of float, default (0.03, 0.1, 0.3, 1.0)
        The step sizes of the descents, one expert each; 1 is the step of the worst-case theory.
    experts : tuple of Adviser or Context or Restarts, default ()
        The experts that are mixed with the descents: advisers such as `experts.Resolve()`,
        names of points that are given with each round, at most one context such as
        `experts.Season(96)`, which learns one point per cell, and `experts.Restarts()`, for
        data whose habits change.

    See Also
    --------
    LyapunovDescent : One descent alone; less time per round.
    tidewolf.experts.Resolve : Re-solving with headroom, as experts.
    tidewolf.experts.Season : One decision per time of day.
    tidewolf.experts.Restarts : Descents that begin anew, for data whose habits change.
    Session : One round at a time.

    Notes
    -----
    In round t experts i propose points z_i of K, and x = sum_i p_i z_i is played. The violation
    so far gives one weight w, and V = 1/caution. Every expert is judged by the one gradient
    s = V grad f(x) + w grad g^+(x): AdaHedge updates p, descents step against s. For each expert

        sum_t V (f(x) - f(z_i)) + w (g^+(x) - g^+(z_i))  <=  sum_t <s, x - z_i>,

    and the right side over V is `guard` of `run.experts`: it bounds loss plus weighted violation,
    not the loss alone. `guarantee()` has numbers only with a horizon and both Lipschitz
    constants, on sets that are projected on exactly (boxes, products of simplices); else bounds
    are measured. The site proves them under Theory.

    References
    ----------
    D. Garber and B. Kretzu, "Projection-free online convex optimization with time-varying
    constraints", ICML 2024: projections by a linear minimization oracle.

    A. Sinha and R. Vaze, "Optimal algorithms for online convex optimization with adversarial
    constraints", NeurIPS 2024: the weight of violations.

    S. de Rooij, T. van Erven, P. Gruenwald and W. Koolen, "Follow the leader if you can, hedge if
    you must", JMLR 2014: the weights of experts (AdaHedge).

    Examples
    --------
    Three options, the cheapest of which may take at most half:

    >>> K = tw.sets.Simplex(3)
    >>> losses = tw.functions.Linear(np.tile([2.0, 1.0, 0.0], (300, 1)))
    >>> limits = tw.functions.Affine(np.tile([0.0, 0.0, 1.0], (300, 1)), np.full(300, 0.5))
    >>> learner = tw.Ensemble(K, experts=[tw.experts.Resolve()])
    >>> run = tw.run(learner, tw.Stream(losses, limits))
    >>> np.round(run.learner.act(run.final_state), 1)
    array([0. , 0.5, 0.5])
    >>> bool(run.oracle_calls <= 300)
    True
    """

    state_type: ClassVar = EnsembleState

    step_scales: StepScales = (0.03, 0.1, 0.3, 1.0)
    experts: Annotated[tuple[Adviser | Context | Restarts, ...], ExpertsSetting()] = ()

    @property
    def needs(self) -> type[FullInformation] | type[FirstOrder]:  # type: ignore[override]
        """The functions themselves where an adviser re-solves with them, else their gradients."""
        return FullInformation if self.wants_functions else FirstOrder

    def reads(self, losses: batch.Batch) -> type[FullInformation] | type[FirstOrder]:
        """The functions also where losses declare their curvature."""
        return FullInformation if losses.exp_concavity is not None else self.needs

    @property
    def scales(self) -> tuple[float, ...]:
        if self.restarts is None:
            return self.step_scales
        return (*self.step_scales, *(self.restarts.scale,) * self.restarts.kept)

    @cached_property
    def _called(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """The names of all experts, their kinds, and what they are called in sentences."""
        scales = self.step_scales
        found = [(f"descent {k:g}", "descent", f"descent, step scale {k:g}") for k in scales]
        late = () if self.restarts is None else self.restarts.names
        found += [(name, "descent", f"descent, {name} rounds") for name in late]
        if self.context is not None:
            name = type(self.context).__name__.lower()
            found.append((name, "context", f"the policy by {name}"))
        for adviser in self.advisers:
            both = zip(adviser.names, adviser.in_words, strict=True)
            found += [(name, "advice", words) for name, words in both]
        names, kinds, words = zip(*found, strict=True)
        return arguments.all_different(names), kinds, words

    @property
    def names(self) -> tuple[str, ...]:
        return self._called[0]

    @cached_property
    def prior(self) -> Floats:
        """Where losses declare their curvature: one part of m for the context and each adviser; of
        the rest `STAYING` for `Static`, if it is there, and descents have shares as 1/scale^2.
        """
        small, prior = np.array(self.scales) ** -2.0, np.full(len(self.names), 1.0)
        stays = np.array([name == "static" for name in self.names])
        moves = np.arange(len(prior)) < len(small)
        rest, staying = float((stays | moves).sum()), STAYING if stays.any() else 0.0
        prior[stays] = staying * rest
        prior[moves] = (1.0 - staying) * rest * small / small.sum()
        return arrays.frozen(prior / len(prior))

    def rounds_at_once(self, state: State) -> int:
        return 10**9

    def policy_bound(self, record: Record) -> Bound:
        """The bound against the best policy of the context, and for the violation where only a
        policy satisfies all constraints.
        """
        if self.context is None:
            return Bound(reason="Without a context there is no policy but a fixed point.")
        state = record.final_state
        return for_what_was_played(self.bound_of(state, policies=True), state)

    def experts_of(self, state: State) -> tuple[Expert, ...]:
        a, V = state.accounts, math.ldexp(1.0 / self.caution, -state.dual.exponent)
        feedback, rounds, outside = a.unseen == 0, max(1, state.t), [0.0] * self._groups
        for adviser, own in zip(self.advisers, state.advisers, strict=True):
            outside += [adviser.outside(own)] * len(adviser.names)
        return tuple(
            Expert(
                name=name,
                kind=kind,
                weight=float(a.played[i]),
                mean_weight=float(a.weights[i]) / rounds,
                guard=float(a.guard[i]) / V if V > 0.0 else math.inf,
                loss=float(a.losses[i]) if feedback else None,
                violation=float(a.violations[i]) if feedback else None,
                rounds=int(a.available[i]),
                solves=round(float(a.solves[i])),
                calls=round(float(a.calls[i])),
                outside=outside[i],
                run_loss=float(a.run_losses[i]) if feedback else None,
                run_violation=float(a.run_violations[i]) if feedback else None,
            )
            for i, (name, kind) in enumerate(zip(*self._called[:2], strict=True))
        )

    def proposals(self, state: State, number: int | None = None) -> tuple[Proposal, ...]:
        own = next((one for one in state.pending if one.round == number), None)
        own = self.committed(state).upcoming if own is None else own
        return tuple(map(Proposal, self._called[2], own.p.tolist(), own.points))

    def adviser_in_words(self, name: str) -> str:
        if name not in self.names:
            return name
        return self._called[2][self.names.index(name)].partition(", ")[0]

    def guards(self, state: State) -> tuple[Guard, ...]:
        a, V = state.accounts, math.ldexp(1.0 / self.caution, -state.dual.exponent)
        if V == 0.0:
            return ()
        lefts = (None,) * len(self.names) if a.unseen else (a.lost / V).tolist()
        return tuple(map(Guard, self.names, lefts, (a.guard / V).tolist()))

    def measures(self, state: State) -> tuple[float, ...]:
        """The weights of the round just played: those of the coming one may still wait for what
        is known before it.
        """
        return tuple(state.accounts.played.tolist())

    @classmethod
    def examples(cls, K: oracle.HasLMO, horizon: int) -> Sequence[Learner[Any]]:
        return (
            cls(K),
            cls(K, horizon=horizon, calls_per_round=0.4, step_scales=(1.0,)),
            cls(
                K,
                experts=(Season(max(2, horizon // 3), cells=3), Restarts(max(1, horizon // 8), 3)),
                caution=1.0,
                tolerance=1e-2,
            ),
        )
