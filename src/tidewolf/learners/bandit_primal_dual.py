"""Primal-dual play from values alone  (Garber & Kretzu 2024, Algorithm 5, Theorem A.1).

    block of k <= b rounds around x, each played at z_t = x + mu u_t,
                  values f_t(z_t) and g_t(z_t) seen:
    y    <-  ball( y - eta sum_t (n/mu) (f_t + lam g_t^+) u_t )                           (primal)
    x, y <-  AFP(y from x) on the shrunk set c + (1 - mu/r)(K - c), |x - y|^2 <= 3 eps    (feasible)
    lam  <-  max(0, lam + eta sum_t (g_t^+ - delta eta lam))                              (dual)

n is the dimension of aff(K), u_t uniform on the unit sphere of its directions, r the radius of a
ball around c within aff(K) inside K; every z_t lies in K as x lies in the shrunk set. The theorem's
settings, `BanditPrimalDual.theorem(...)`, are

    b = floor(T^{1/2}),   mu = sqrt(n r) T^{-1/4},   eta = R/(sqrt(n) G) T^{-3/4},
    eps = 61 R^2 T^{-1/2} ln T,   G = max(G_f, G_g, M_f, M_g),   |f_t| <= M_f, |g_t| <= M_g on K,
    delta = 24 sqrt(183) G^2 max(n/r, n/sqrt(r), sqrt(n), n/(sqrt(r) R)) T^{1/2} sqrt(ln T).

mu <= r needs T >= n^2/r^2, else the set has no room and the settings are refused. They depend on
the units, do not move unless T is in the hundred thousands, and guarantee nothing before that. So
without eta and delta the steps are free of units,

    d    <-  sum_t ( (f_t - base)/M_f + lam (g_t^+ - base)/M_g ) u_t,   S <- S + |d|^2,
    y    <-  ball( y - (2R'/sqrt(2S)) d ),   R' = (1 - mu/r) R the ball's radius,
    lam  <-  max(0, lam + nu sum_t (g_t^+/M_g - theta lam)),

with b, nu, theta and the tolerance of `PrimalDual`, and mu = min(sqrt(n r/R) T^{-1/4} R, r/2). The
factor n/mu that makes d an estimate of the gradient is the same in every block and changes no step.
Calls that are left refine the projection until |x - y| <= mu/4, which can only bring x and y
nearer. M_f and M_g are given sizes, or half the range of the losses and the largest violation seen
before this block (S is kept in units of M_f where that grows): rescaling x, f or g changes no
decision, nor does adding a constant to the losses. Errata of the paper: the dual step damps lam,
eta has its 1/sqrt(n) as in the proof, the ball is around the center, and a last, shorter block is
followed by no projection.

All that is known is known in expectation over the learner's own coins, for functions chosen without
looking at them: a run measures no bound. `guarantee()` holds for given slopes G, sizes M and T, if
some point x* satisfies every constraint. As printed, tau^2 = 3 eps, with the condition that the
theorem's proof supposes of the multiplier's terms,

    eta b (n^2 M_g^2/mu^2 + b G_g^2 + b delta^2 eta^2) + tau b^{1/2} (n M_g/mu + b^{1/2} G_g)
        + b mu (G_g + M_g/r)  <=  eta b delta/2:
    regret    <= A + T mu G_f (1 + R/r),
    violation <= sqrt( 2 (delta eta T + 1/eta) (A + 2 R G_f T) ) + mu G_g T
    A = 2R^2/eta
        + T ( tau n (M_g/4 + M_f)/(mu sqrt(b)) + (G_g/4) (tau + mu) + mu M_g/(4r) + tau G_f
        + eta n^2 M_f^2/mu^2 + eta b (G_f^2 + M_g^2) + mu G_f )

(the R in R/r is missing in the paper). The proof says of averages over the sphere what holds of
those over the ball; their difference, mu G/(n + 1), fits into its terms in mu, of which it counts
one too many. A shorter last block fits in too: E <d, x - y> is at most tau |E d|, as x - y is known
before u, so that it needs no share of the first term of A. The condition with the theorem's
settings, divided by eta b delta, with u = 24 sqrt(183), s the maximum in delta and L = sqrt(ln T):
the terms of delta^2 are b delta eta^2 = (u s R^2/n) L T^{-1/2} for b = T^{1/2}; both of tau are at
most 1/24; all others are at most 1/(u L). So if it fails, b delta eta^2 > 1/2 - 1/12 - 4/(u L) >
0.38, and that term falls by a share of 2/b while T passes those with equal b, much faster than the
only one that grows there (that of n M_g/mu, at most 1/24, by a share of 1/(2b)): the condition gets
easier along equal b, and along the squares, where b delta eta^2 falls and no term grows.

Without units, R = M_f = M_g = 1, slopes k_f = G_f R/M_f, k_g = G_g R/M_g and tau = sqrt(tol),

    regret    <= A + T mu k_f (1 + 1/r),
    violation <= sqrt( 2 (theta T + 1/nu) (A + 2T min(1, k_f)) ),
    A = 2 sqrt(2) sqrt( T (4 n^2/mu^2 + b k_f^2) ) + tau k_f T + nu b T/2 + 2 min(1, k_f)
        + C^2/(2 theta (1 - nu b theta)),
    C = 2 sqrt(2) sqrt( n^2/mu^2 + b k_g^2 ) + (tau k_g + a) sqrt(T),
    a = mu k_g + (mu/r) min(1, k_g).

Proof. Let d have its factor n/mu, z = c + (1 - mu/r)(x* - c), F and H the averages of f and g^+
over balls of radius mu, k_m the rounds of block m, p^2 = E sum_m k_m lam^2. (i) d estimates the
gradient of sum F + lam H at x, but for the very first round, which has no base and costs at most 2
min(1, k_f). So E sum [F(x) - F(z) + lam (H(x) - H(z))] <= E sum_m <d, x - y> + E sum_m <d, y - z>.
In the first sum x - y is known before u: it is at most tau E sum_m k_m (k_f + lam k_g). The
second is at most 2 sqrt(2) E sqrt(S) (methods/steps/adagrad.py with |y - z| <= 2R), and E |d|^2 is
a variance, at most k_m (n/mu)^2 (2 + lam)^2, plus a squared mean, at most k_m^2 (k_f + lam k_g)^2:
so E sqrt(S) <= sqrt( T (4 n^2/mu^2 + b k_f^2) ) + sqrt( n^2/mu^2 + b k_g^2 ) p. (ii) As in
methods/steps/saddle.py, with q the violations seen, for every l >= 0: l sum q - (theta T + 1/nu)
l^2/2 <= sum lam q + nu b T/2 - (theta/2)(1 - nu b theta) sum_m k_m lam^2. (iii) In a round E
g^+(z_t) <= H(x) + mu k_g/(n + 1), H(z) <= g^+(z) + mu k_g n/(n + 1), g^+(z) <= (mu/r)
g^+(c) <= (mu/r) min(1, k_g), and sum_m k_m lam <= sqrt(T) p. Add (i) and (ii): what is left of lam
is C p - (theta/2)(1 - nu b theta) p^2, at most the last term of A; take l = 0, and the best l.
Last, E f(z_t) <= F(x) + mu k_f/(n + 1), F(z) <= f(z) + mu k_f n/(n + 1), f(z) <= f(x*) + (mu/r)
k_f.

Gradients from one value per round are those of Flaxman, Kalai & McMahan (2005): for every number
`base` that does not depend on u,

    E[ (n/mu) (f(z) - base) u ]  =  the gradient, within aff(K), of F(x) = E f(x + mu v),
        v uniform in the unit ball,

as E u = 0. F is convex with f(x) <= F(x) <= E f(z) <= F(x) + mu G/(n + 1) and F(x) <= f(x) + mu G
n/(n + 1), G a slope of f. Any base of earlier rounds will do, as u is drawn anew: here the mean
over the last block and this one so far, which makes estimates blind to constants and small where
values vary little. u is a Gaussian made tangent to aff(K) and of length 1, a function of the seed
and the round: split, resumed or taken many at a time, rounds explore the same way.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple, final

import numpy as np

from tidewolf.core.arrays import as_count, frozen, inner, like, namespace
from tidewolf.core.errors import InvalidInput, NotAMember, NotSupported, WrongType
from tidewolf.core.feedback import MODERATE, Bandit, require_bandit
from tidewolf.core.randomness import gaussian_rows
from tidewolf.core.settings import Seed
from tidewolf.core.types import Array, Floats
from tidewolf.methods import clock, paper, settings
from tidewolf.methods.base import Bound, Record
from tidewolf.methods.steps import adagrad, saddle, slopes
from tidewolf.projection import ActiveSet
from tidewolf.sets import Shrunk
from tidewolf.sets.base import ConvexSet, membership_tolerance

IN_EXPECTATION = (
    "Bandit bounds hold in expectation over the learner's randomness: see `guarantee()`. "
    "They cannot be checked on a single run."
)
ASSUMED = ("loss_lipschitz", "constraint_lipschitz", "loss_size", "constraint_size")
# The values of a block that has seen no round yet.
NO_VALUES = Bandit(frozen(np.zeros(0)), frozen(np.zeros(0)))
_FINE = 0.25  # Calls that are left bring x this near to y, in units of mu.


class SeenValues(NamedTuple):
    least_loss: float = math.inf
    largest_loss: float = -math.inf
    largest_breach: float = 0.0
    mean_loss: float = 0.0
    mean_breach: float = 0.0
    mean_rounds: int = 0  # of how many rounds the means are: those of the last block

    def after(self, losses: Floats, breaches: Floats) -> "SeenValues":
        return SeenValues(
            min(self.least_loss, float(losses.min())),
            max(self.largest_loss, float(losses.max())),
            max(self.largest_breach, float(breaches.max())),
            float(losses.mean()),
            float(breaches.mean()),
            len(losses),
        )


class State(NamedTuple):
    t: int
    point: paper.ProjectedPoint
    open: Bandit
    epoch: clock.Epoch
    oracle_budget: float = 0.0
    calls: int = 0
    values: SeenValues = SeenValues()
    lam: float = 0.0
    square_sum: float = 0.0  # S

    @property
    def distance(self) -> float:
        return self.point.distance


def require_explorable(K: Any, owner: str) -> None:
    """Refuse a set that knows no ball inside it to explore in and is no single point."""
    if not isinstance(K, ConvexSet):
        raise WrongType(f"{owner} needs a sets.ConvexSet such as sets.Simplex(3), not {K!r}.")
    if K.dimension > 0 and not (K.inner_radius or 0.0) > 0.0:
        raise NotSupported(
            f"{owner} explores within a ball around the center of its set, and {K!r} knows of "
            f"none: its inner_radius is {K.inner_radius}. Give a set with an inner_radius above 0."
        )


def explorable_from(r: float, n: int) -> int:
    """The least horizon with mu <= r, a hair below for rounding."""
    return max(1, math.ceil((n / r) ** 2 * (1.0 - 1e-12)))


def directions(K: ConvexSet, seed: int, first: int, count: int) -> Array:
    """The unit vectors of rounds `first` to `first + count - 1`, (count, *shape); zeros where there
    is no direction.
    """
    shape = (count, *K.shape)
    if K.dimension == 0:
        return like(np.zeros(shape), K.center)
    xp, size = namespace(K.center), int(np.prod(K.shape))
    z = like(gaussian_rows(seed, "exploration", first, count, size).reshape(shape), K.center)
    # each row in memory of its own: BLAS may round by address, and rows must not depend on count
    tangents = [K.tangent(z[i, ...] + 0.0) for i in range(count)]
    lengths = xp.stack([xp.vecdot(v, v) for v in (xp.reshape(v, (size,)) for v in tangents)])
    return xp.stack(tangents) / xp.reshape(xp.sqrt(lengths), (count,) + (1,) * len(K.shape))


def combined(coefficients: Floats, u: Array) -> Array:
    """sum_t c_t u_t."""
    xp = namespace(u)
    return xp.reshape(like(coefficients, u) @ xp.reshape(u, (u.shape[0], -1)), tuple(u.shape[1:]))


def centred(values: Floats, mean: float, rounds: int) -> Floats:
    """Values of a block minus what they were before, on average: over `rounds` rounds of this mean,
    and over the block so far.
    """
    before = np.concatenate([[0.0], np.cumsum(values)[:-1]]) + rounds * mean
    base = before / np.maximum(1, rounds + np.arange(len(values)))
    if rounds == 0:
        base[0] = values[0]
    return values - base


@settings.takes_start
@final
@dataclass(frozen=True, eq=False, repr=False)
class BanditPrimalDual(paper.SaddleLearner[State]):
    """The paper's bandit learner: with its own settings as printed, or with unit-free steps and a
    budget of oracle calls.

    Parameters
    ----------
    K : ConvexSet
        The hard constraints; needs a positive `inner_radius` for exploration.
    horizon : int, optional
        The number of rounds T. None: 256, doubled whenever they are over.
    calls_per_round : float, optional
        The most oracle calls per round, on average over the rounds so far; unspent calls are
        kept. None: 1, or with `eps` as many as the paper's projections need.
    loss_lipschitz : float, optional
        The Lipschitz constant of the losses; steeper losses are refused. None: estimated from
        the feedback, and there is no guarantee before the run.
    constraint_lipschitz : float, optional
        The Lipschitz constant of the constraints; steeper ones are refused. None: estimated
        from the feedback, and there is no guarantee before the run.
    block : int, optional
        Rounds per block, in which the decision is constant. None: chosen from the horizon and
        the calls.
    eps : float, optional
        Projections end at |x - y|^2 <= 3 eps. None: as near as calls allow.
    start_at : array, optional
        The first decision, such as what is installed now; may be given as `start`. None: the
        set's center.
    eta : float, optional
        The step, in the caller's units. None: unit-free, or the theorem's.
    delta : float, optional
        The damping of the multiplier. None: unit-free, or the theorem's.
    loss_size : float, optional
        The largest absolute value of a loss; larger ones are refused. None: half the range seen
        so far, and there is no guarantee before the run.
    constraint_size : float, optional
        The largest absolute value of a constraint; larger ones are refused. None: the largest
        violation seen so far, and there is no guarantee before the run.
    mu : float, optional
        The exploration radius. None: chosen from the horizon.
    seed : int, default 0
        The seed of the random directions.

    Examples
    --------
    Three options, the cheapest of which may take at most half:

    >>> K = tw.sets.Simplex(3)
    >>> losses = tw.functions.Linear(np.tile([2.0, 1.0, 0.0], (300, 1)))
    >>> limits = tw.functions.Affine(np.tile([0.0, 0.0, 1.0], (300, 1)), np.full(300, 0.5))
    >>> run = tw.run(tw.BanditPrimalDual(K, horizon=300, seed=7), tw.Stream(losses, limits))
    >>> bool(run.oracle_calls <= 300)
    True
    >>> K.infeasibility(run.learner.act(run.final_state)) < 1e-9
    True
    """

    needs: ClassVar = Bandit
    state_type: ClassVar = State
    printed: ClassVar = {"eta": 0.01, "delta": 1.0}
    delta_needs: ClassVar = ASSUMED
    eta_needs: ClassVar = ASSUMED

    K: Annotated[ConvexSet, settings.HardSet(require=require_explorable)]
    loss_size: settings.OptionalPositive = None
    constraint_size: settings.OptionalPositive = None
    mu: settings.AboveZero = None
    seed: Annotated[int, Seed()] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mu is not None and self.K.dimension and self.mu > self._r * (1.0 + 1e-9):
            raise InvalidInput(
                f"mu of BanditPrimalDual must be at most the inner_radius of its set, "
                f"{self._r:.6g}, not {self.mu:.6g}; the theorem's is from a horizon of n^2/r^2 = "
                f"{explorable_from(self._r, self._n)} on.",
                setting="mu",
            )
        if self.start_at is None:
            return
        shrunk, x = self._shrunk(self.first_epoch().horizon), self.first_point
        if (infeasibility := shrunk.infeasibility(x)) > membership_tolerance(x, shrunk.radius):
            raise NotAMember(
                "The starting point is not a member of the set shrunk by 1 - mu/r = "
                f"{shrunk.factor:.6g}, which leaves room to explore: its infeasibility is "
                f"{infeasibility:.3g}.",
                setting="start",
            )

    @classmethod
    def theorem(  # type: ignore[override]
        cls,
        K: ConvexSet,
        *,
        horizon: int,
        loss_lipschitz: float,
        constraint_lipschitz: float,
        loss_size: float,
        constraint_size: float,
        start: Array | None = None,
        seed: int = 0,
    ) -> "BanditPrimalDual":
        """The settings of Theorem A.1; warns if the horizon is too short for them to move the point
        or to guarantee anything.

        Parameters
        ----------
        K : ConvexSet
            The set that every played point belongs to; it knows an `inner_radius`.
        horizon : int
            How many rounds will be played.
        loss_lipschitz, constraint_lipschitz : float
            The largest slopes that losses and constraints may have.
        loss_size, constraint_size : float
            The largest absolute values that they may have; larger ones are refused.
        start : array, optional
            Where to start, a member of the shrunk set. None: the center.
        seed : int, default 0
            The seed of the random directions.

        Returns
        -------
        BanditPrimalDual
            One with `block`, `eta`, `delta`, `mu` and `eps` of the theorem; `dataclasses.replace`
            changes one of them.
        """
        sizes = (loss_lipschitz, constraint_lipschitz, loss_size, constraint_size)
        return cls._theorem(
            K, start, {"horizon": horizon, **dict(zip(ASSUMED, sizes, strict=True))}, seed=seed
        )

    def theorem_values(self, T: int) -> dict[str, float]:
        R, r, n, G = slopes.unit_length(self.K), self._r, self._n, max(self.assumed) or 1.0
        shape = max(n / r, n / math.sqrt(r), math.sqrt(n), n / (math.sqrt(r) * R))
        return {
            "block": math.isqrt(T),
            "eta": R / (math.sqrt(n) * G) * float(T) ** -0.75,
            "delta": 24.0 * math.sqrt(183.0) * G**2 * shape * math.sqrt(T * (math.log(T) or 1.0)),
            "mu": math.sqrt(n * r) * float(T) ** -0.25,
            "eps": paper.theorem_eps(T, R),
        }

    def condition(self, tol: float, b: float, eta: float, delta: float, *more: float) -> bool:
        (mu,), n, (_, G_g, _, M_g) = more, self._n, self.assumed
        squares = eta * b * ((n * M_g / mu) ** 2 + b * G_g**2 + b * (delta * eta) ** 2)
        distances = math.sqrt(tol * b) * (n * M_g / mu + math.sqrt(b) * G_g)
        return squares + distances + b * mu * (G_g + M_g / self._r) <= eta * b * delta / 2.0

    def own_values(self, T: int) -> tuple[float, ...]:
        return (*super().own_values(T), self.mu_for(T))

    def theorem_horizon(self) -> int:
        return max(explorable_from(self._r, self._n), super().theorem_horizon())

    @property
    def assumed(self) -> tuple[float, ...]:
        """The slopes and sizes G_f, G_g, M_f and M_g that were given, 0 for those that were not."""
        return tuple(getattr(self, name) or 0.0 for name in ASSUMED)

    @property
    def _n(self) -> int:
        """The dimension; a set of one point explores nothing, and any will do."""
        return self.K.dimension or 1

    @property
    def _r(self) -> float:
        return self.K.inner_radius or 1.0

    def start(self) -> State:
        epoch = self.first_epoch()
        point = paper.ProjectedPoint.start(self._shrunk(epoch.horizon), self.first_point)
        return State(0, point, NO_VALUES, epoch)

    def mu_for(self, T: int) -> float:
        """How far around x it explores, in an epoch of T rounds."""
        if self.K.dimension == 0:
            return 0.0
        if self.mu is not None:
            return min(self.mu, self._r)
        r, R = self._r, slopes.unit_length(self.K)
        chosen: float = math.sqrt(self._n * r / R) * float(T) ** -0.25 * R
        return min(chosen, 0.5 * r)

    def _shrunk(self, T: int) -> Shrunk:
        """The members with a ball of radius mu around them, within aff(K), inside K."""
        return Shrunk(self.K, max(1.0 - self.mu_for(T) / self._r, 1e-12))

    def projected_set(self, state: State) -> Shrunk:
        return self._shrunk(state.epoch.horizon)

    def act(self, state: State) -> Array:
        return self.acts(state, 1)[0, ...]

    def acts(self, state: State, k: int) -> Array:
        state = self.in_epoch(state)
        k = as_count(k, "How many points are asked for", most=self.rounds_left(state))
        u = directions(self.K, self.seed, state.t, k)
        return frozen(state.point.x + self.mu_for(state.epoch.horizon) * u)

    def update(self, state: State, feedback: Bandit) -> State:
        state = self.in_epoch(state)
        left = self.rounds_left(state)
        feedback = require_bandit(feedback, left)
        for name, values, given in zip(
            ("loss", "constraint"), feedback, (self.loss_size, self.constraint_size), strict=True
        ):
            if given is not None and (size := float(np.abs(values).max())) > given * (1.0 + 1e-9):
                raise InvalidInput(
                    f"A {name} value of size {size:.6g} was seen, above {name}_size = "
                    f"{given:.6g}; give a larger one, or none."
                )
        both = zip(state.open, feedback, strict=True)
        block = Bandit(*(frozen(np.concatenate(parts)) for parts in both))
        state = state._replace(t=state.t + feedback.rounds)
        if feedback.rounds < left:
            return state._replace(open=block)
        return self.finish_block(state._replace(open=NO_VALUES), block)

    def step(self, state: State, block: Bandit) -> State:
        T, K, n, point, lam = state.epoch.horizon, self.K, block.rounds, state.point, state.lam
        s, u = self.steps(T), directions(K, self.seed, state.t - n, n)
        losses, breaches = block.loss_values, np.maximum(block.constraint_values, 0.0)
        if not self.as_printed:
            return self._unit_free_step(state, losses, breaches, u, s)
        d = combined(K.dimension / (self.mu_for(T) or 1.0) * (losses + lam * breaches), u)
        y = adagrad.into_ball(point.y - s.eta * d, K.center, K.radius)
        lam = max(0.0, lam + s.eta * float((breaches - s.theta * lam).sum()))
        return state._replace(point=point.moved_to(frozen(y)), lam=lam)

    def _unit_free_step(
        self, state: State, losses: Floats, breaches: Floats, u: Array, s: saddle.SaddleSteps
    ) -> State:
        before, shrunk = state.values, self.projected_set(state)
        seen = before.after(losses, breaches)
        M_f, M_g = self._sizes(seen)
        M_f_before, M_g_before = self._sizes(before)
        unit, M_g_before = (M_f_before or M_f) / (M_f or 1.0), M_g_before or 1.0

        breached = centred(breaches, before.mean_breach, before.mean_rounds)
        most = MODERATE * M_g_before
        c = centred(losses, before.mean_loss, before.mean_rounds) / (M_f or 1.0)
        c = c + (unit * state.lam) * (np.clip(breached, -most, most) / M_g_before)
        size = float(np.abs(c).max()) or 1.0  # apart, as the dtype of u may not hold its square
        d = combined(c / size, u)
        y, S = state.point.y, state.square_sum * unit**2 + size * size * inner(d, d)
        if S > 0.0:
            y = y - (2.0 * shrunk.radius * size / math.sqrt(2.0 * S)) * d
        y = frozen(adagrad.into_ball(y, shrunk.center, shrunk.radius))
        h = float(breaches.sum()) / (M_g or 1.0) - len(losses) * s.theta * state.lam
        lam = max(0.0, state.lam + s.nu * h)
        return state._replace(point=state.point.moved_to(y), values=seen, lam=lam, square_sum=S)

    def _sizes(self, seen: SeenValues) -> tuple[float, float]:
        """M_f and M_g, as far as they are known; 0 if nothing is."""
        return (
            self.loss_size or max(0.0, 0.5 * (seen.largest_loss - seen.least_loss)),
            self.constraint_size or seen.largest_breach,
        )

    def finest2(self, T: int) -> float:
        return (_FINE * self.mu_for(T)) ** 2 or 1.0

    def renew(self, state: State) -> State:
        point = state.point
        if self.mu is None:  # an active set of the larger set, now that it explores less
            point = paper.ProjectedPoint.of(ActiveSet.start(self.projected_set(state), point.x))
        return state._replace(point=point, lam=0.0, square_sum=0.0)

    def guarantee(self) -> Bound:
        """What is known, in expectation, before the first round of a run of `horizon` rounds."""
        T, n, (G_f, G_g, M_f, M_g) = self.horizon, self.K.dimension, self.assumed
        if T is None or 0.0 in self.assumed:
            return Bound(reason=f"A guarantee needs horizon, {', '.join(ASSUMED)}.")
        if n == 0:
            return Bound(0.0, 0.0)
        b, s, tol = self.block_for(T), self.steps(T), self.known_distance2(T)
        R, r, mu = self.K.radius, self._r, self.mu_for(T)
        if self.as_printed:
            if tol is None or self.condition_concern():
                return Bound(reason=" ".join(self.concerns))
            tau, eta = math.sqrt(tol), s.eta
            A = 2.0 * R**2 / eta + T * (
                tau * n * (M_g / 4.0 + M_f) / (mu * math.sqrt(b))
                + G_g / 4.0 * (tau + mu)
                + mu * M_g / (4.0 * r)
                + tau * G_f
                + eta * (n * M_f / mu) ** 2
                + eta * b * (G_f**2 + M_g**2)
                + mu * G_f
            )
            violation = (
                saddle.violation_bound(A + 2.0 * R * G_f * T, T, eta, s.theta) + mu * G_g * T
            )
            return Bound(A + T * mu * G_f * (1.0 + R / r), violation)
        if tol is None:
            return self.nothing_known(T)
        return self._unit_free_guarantee(T, b, s, math.sqrt(tol) / R)

    def _unit_free_guarantee(self, T: int, b: int, s: saddle.SaddleSteps, tau: float) -> Bound:
        n, R, (G_f, G_g, M_f, M_g) = self.K.dimension, self.K.radius, self.assumed
        mu, r, k_f, k_g = self.mu_for(T) / R, self._r / R, G_f * R / M_f, G_g * R / M_g
        a = mu * k_g + mu / r * min(1.0, k_g)
        C = math.sqrt(8.0 * (n**2 / mu**2 + b * k_g**2)) + (tau * k_g + a) * math.sqrt(T)
        A = (
            math.sqrt(8.0 * T * (4.0 * n**2 / mu**2 + b * k_f**2))
            + tau * k_f * T
            + s.nu * b * T / 2.0
            + 2.0 * min(1.0, k_f)
        )
        A += C**2 / (2.0 * s.theta * (1.0 - s.nu * b * s.theta))
        return Bound(
            M_f * (A + T * mu * k_f * (1.0 + 1.0 / r)),
            M_g * saddle.violation_bound(A + 2.0 * T * min(1.0, k_f), T, s.nu, s.theta),
        )

    def bound(self, record: Record) -> Bound:
        return Bound(reason=IN_EXPECTATION)
