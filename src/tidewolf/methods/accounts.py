"""What the experts of an ensemble are fed after a round, and their sums over all rounds: guard,
weight, and the loss and violation that each would have had.

By gradients every expert gets the surrogate's at the point x that was played, m the experts' mix,

    l_i = <s, z_i - x>,     price = <s, x - m>,     s = V grad f(x) + w grad g^+(x) within aff(K);

by values, where the functions are seen, with L(z) = V f(z) + w g^+(z),

    l_i = L(z_i) - L(x),    price = L(x) - L(m),    s_i = the gradient of L at the group's own z_i.

Where limits have weights of their own, w g^+ is sum_j w_j g_j^+ throughout. The mixer gets
l_i + price, because it does not choose what is played if that is not the mix. Rounds that arrive
together are weighed together, and their numbers add up. By convexity, for any w >= 0,

    V sum (f(x) - f(z_i)) + sum w (g^+(x) - g^+(z_i))  <=  A_i  =  sum -l_i                  (guard)

Of rounds whose functions were not seen the left side is unknown.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.arrays import frozen, inner, to_numpy
from tidewolf.core.feedback import FirstOrder, FullInformation, first_order
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array, Floats
from tidewolf.methods.late import Committed
from tidewolf.methods.steps.lyapunov import StepGradient, Surrogate
from tidewolf.methods.steps.slopes import tangent_part


class PlayedRound(NamedTuple):
    """A round, or several that shared a point, as it is observed."""

    own: Committed  # as it was decided
    x: Array  # what was played
    block: FirstOrder
    functions: FullInformation | None

    @property
    def there(self) -> Floats:
        """1 for each expert that proposed a point, else 0."""
        return np.array([float(z is not None) for z in self.own.points])


class ExpertFeedback(NamedTuple):
    losses: Floats  # l_i, 0 for those absent
    price: float  # of playing x in place of the mix
    mixed: Floats  # what the mixer gets: l_i + price, 0 for those absent
    grads: tuple[StepGradient, ...]  # one a group of descents

    def and_of(self, other: "ExpertFeedback") -> "ExpertFeedback":
        return ExpertFeedback(
            self.losses + other.losses,
            self.price + other.price,
            self.mixed + other.mixed,
            tuple(map(_both, self.grads, other.grads)),
        )

    def as_usual(self, one: PlayedRound) -> "ExpertFeedback":
        """What the usual mixer gets of a round that an outage moved, as though its mix m had been
        overridden: l(z_i) - l(m) for the usual proposals, with P = w grad g^+ and w h as met at x,

            l(z)  =  V <grad f, z> + max(0, w h + <P, z - x>).

        l is convex, so that the guard holds for it; and V (f(x) - f(u)) + w g^+(x) <= l(x) - l(u)
        for every feasible u. <P, z> alone would say that the farther from a limit, the better.
        """
        if one.own.usual is None:
            return self
        grad = self.grads[0]

        def more(z: Array) -> float:
            P, value, d = grad.penalty_gradient, grad.penalty_value, z - one.x
            return inner(grad.g, d) + (0.0 if P is None else max(0.0, -value - inner(P, d)))

        return _fed(one._replace(own=one.own.usual), more, self.grads)


def _both(a: StepGradient, b: StepGradient) -> StepGradient:
    """Two gradients as one, for who stands where the first was met."""
    g, P, value = a.g + b.g, a.penalty_gradient, a.penalty_value
    if b.penalty_gradient is not None:
        P = b.penalty_gradient if P is None else P + b.penalty_gradient
        value += b.penalty_value - inner(b.penalty_gradient, b.x - a.x)
    return StepGradient(g, inner(g, g), a.x, P, value)


def by_gradients(
    K: HasLMO, observed: Sequence[PlayedRound], groups: int, weighed: Surrogate
) -> list[ExpertFeedback]:
    """The surrogate's gradient at each played point, for all experts; one for each round."""

    def fed(one: PlayedRound) -> ExpertFeedback:
        grad = weighed.grad if len(observed) == 1 else _step_gradient(K, one.x, one.block, weighed)
        return _fed(one, lambda z: inner(grad.g, z - one.x), (grad,) * groups)

    return [fed(one) for one in observed]


def by_values(
    K: HasLMO, observed: Sequence[PlayedRound], groups: int, weighed: Surrogate
) -> list[ExpertFeedback]:
    """Values of the surrogate at each expert's point, and its gradient at each group's own; one for
    each round.
    """

    def fed(one: PlayedRound) -> ExpertFeedback:
        assert one.functions is not None
        losses, limits = one.functions

        def value(z: Array) -> float:
            loss = float(losses.values(z).sum())
            return weighed.loss_weight * loss + weighed.penalty_weight * weighed.breach(limits, z)

        def gradient(z: Array | None) -> StepGradient:
            if z is None:  # the context is unknown: nothing of it moves
                return weighed.grad._replace(penalty_gradient=None, penalty_value=0.0)
            each = weighed.shares is not None
            block = first_order(losses, limits, z, limits.values(z), per_constraint=each)
            return _step_gradient(K, z, block, weighed)

        played = value(one.x)
        return _fed(one, lambda z: value(z) - played, tuple(map(gradient, one.own.points[:groups])))

    return [fed(one) for one in observed]


def _fed(
    one: PlayedRound, more: Callable[[Array], float], grads: tuple[StepGradient, ...]
) -> ExpertFeedback:
    """What a round says, if `more` is how much more than x a point loses."""
    losses = np.array([0.0 if z is None or z is one.x else more(z) for z in one.own.points])
    price = 0.0 if one.own.mix is one.x else -more(one.own.mix)
    return ExpertFeedback(losses, price, losses + price * one.there, grads)


def _step_gradient(K: HasLMO, z: Array, block: FirstOrder, weighed: Surrogate) -> StepGradient:
    w, n, met = weighed.penalty_weight, block.rounds, weighed.dual.slopes.and_of(block)
    grad_f, _ = tangent_part(K, "loss", block.loss_gradient, n, None, met.loss)
    g, P, value = weighed.loss_weight * grad_f, None, 0.0
    if block.violation > 0.0 and w > 0.0:
        gradient, violation = weighed.limits_of(block)
        P = w * tangent_part(K, "constraint", gradient, n, None, met.constraint)[0]
        g, value = g + P, w * violation
    return StepGradient(g, inner(g, g), z, P, value)


class Accounts(NamedTuple):
    guard: Floats  # A_i, in the dual state's units
    lost: Floats  # the guard's left side, over the rounds with a proposal of it, likewise
    weights: Floats  # sum of p_i
    available: Floats
    losses: Floats
    violations: Floats
    run_losses: Floats  # what was lost at the points played, over the rounds with a proposal of it
    run_violations: Floats
    unseen: int  # rounds whose functions were not seen
    played: Floats  # p of the last round
    calls: Floats  # oracle calls; those of an adviser for several experts are shared between these
    solves: Floats  # linear programs, likewise

    @classmethod
    def start(cls, experts: int) -> "Accounts":
        none = frozen(np.zeros(experts))
        return cls(*(none,) * 8, 0, none, none, none)

    def in_units(self, unit: float) -> "Accounts":
        return self._replace(guard=frozen(self.guard * unit), lost=frozen(self.lost * unit))

    def plus(self, **more: Any) -> "Accounts":
        return self._replace(**{k: frozen(getattr(self, k) + v) for k, v in more.items()})

    def after(self, one: PlayedRound, losses: Floats, weighed: Surrogate) -> "Accounts":
        """After a round with these losses l; with what its functions say of each point, if they
        are seen.
        """
        n, p, there = one.block.rounds, one.own.p, one.there
        found = self.plus(guard=-losses, weights=n * p, available=n * there)._replace(played=p)
        if one.functions is None:
            return found._replace(unseen=self.unseen + n)
        own = _totals(one.functions, one.x, weighed)
        each = [own if z is None else _totals(one.functions, z, weighed) for z in one.own.points]
        loss, breach, shared = np.array(each).T
        return found.plus(
            lost=weighed.loss_weight * (own[0] - loss) + weighed.penalty_weight * (own[2] - shared),
            losses=there * loss,
            violations=there * breach,
            run_losses=there * own[0],
            run_violations=there * own[1],
        )


def _totals(functions: FullInformation, z: Array, weighed: Surrogate) -> tuple[float, float, float]:
    """The sums of the losses and of the violations at z, these also as the surrogate has them."""
    breach = float(np.maximum(to_numpy(functions.constraints.values(z)), 0.0).sum())
    shared = breach if weighed.shares is None else weighed.breach(functions.constraints, z)
    return float(functions.losses.values(z).sum()), breach, shared
