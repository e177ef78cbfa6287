"""Adversarial streams: linear losses and half-spaces of slope 1 within the affine hull, on any set.

With e a direction within aff(K), n_t and n'_t noise, +- turning after every `phase` rounds, every
gradient scaled to length 1:

    switching      f_t = <+-e + n_t, x>      g_t = <n'_t, x - s>
        the best point keeps changing sides
    opposing       f_t = <-e + n_t, x>       g_t = <e + n'_t, x - s>
        what lowers the loss breaks the limit
    random signs   f_t = <n_t, x>            g_t = <n'_t, x - s>
        signs and nothing else: nothing to learn, all to lose
    moving         f_t = <-+e + n_t, x>      g_t = <+-e + n'_t, x - s>
        the limit comes from one side, then from the other
    excluding      f_t = <-+e + n_t, x>      g_t = <+-e, x - s_+->
        what one phase asks for the next forbids
    deadlock       f_t = <-e + n_t, x>       g_t = <+-e, x - s_+->
        the same, turning every round, for one phase; then
                   f_t = <e + n_t, x>        g_t = <e, x - s_->
                       easy from then on, for a learner that still moves

s, on the way from the center to the vertex with the least <e, x>, satisfies every constraint of the
first four. In the others, s_+ = s and s_- lies towards the opposite vertex: limits ask for <e,
x> <= <e, s_+> and for <e, x> >= <e, s_-> > <e, s_+> by turns. No point keeps both; but one does
within a phase of the fifth, and after the first phase of the last.
"""

import math
from typing import Annotated, Any, cast

import numpy as np

from tidewolf.core import batch, errors, oracle, randomness, settings, types
from tidewolf.core.arrays import like, to_numpy
from tidewolf.functions.linear import Affine, Linear
from tidewolf.problems.base import Problem, RandomSeed, Rounds, as_rounds
from tidewolf.sets import ConvexSet, Simplex

KINDS = ("switching", "opposing", "random signs", "moving", "excluding", "deadlock")
# Those on which some point satisfies every constraint.
COMMON = KINDS[:4]
ROUNDS, PHASE = 2000, 100  # the usual number of rounds; those between two turns
NOISE = 0.5  # length of the noise beside e
# how far s lies from the center, as a share of the way to the vertex; in a deadlock
ASIDE, FAR_ASIDE = 0.6, 0.95


@settings.validated
def adversarial(
    rounds: Rounds = None,
    seed: RandomSeed = 0,
    *,
    kind: Annotated[str, settings.Text(choices=KINDS)] = "switching",
    K: ConvexSet | None = None,
    phase: Annotated[int, settings.Count()] = PHASE,
) -> Problem:
    """Adversarial losses and constraints on any set.

    Parameters
    ----------
    rounds : int, optional
        The number of rounds. None: 2,000.
    seed : int, default 0
        The seed of the random numbers.
    kind : str, default 'switching'
        The kind of adversary: "switching", "opposing", "random signs", "moving", "excluding" or
        "deadlock".
    K : ConvexSet, optional
        Any set of two points or more. None: a simplex of 6 entries.
    phase : int, default 100
        How many rounds pass between two turns.

    Returns
    -------
    Problem
        The set, the stream and what they are called.

    Raises
    ------
    InvalidInput
        If there is no such kind, or the set is a single point.

    Examples
    --------
    >>> problem = tw.problems.adversarial(rounds=20, kind="opposing", K=tw.sets.L2Ball(3))
    >>> len(problem), problem.shape
    (20, (3,))
    """
    K = Simplex(6) if K is None else K
    oracle.as_set(K, "An adversary")
    rounds = as_rounds(rounds, ROUNDS, 2 * math.prod(K.shape))
    if K.dimension == 0:
        raise errors.InvalidInput("An adversary needs a set of two points or more.", setting="K")
    # products with it are the parts of directions within the affine hull
    basis = np.stack([_flat(K.tangent(_point(K, unit))) for unit in np.eye(math.prod(K.shape))])
    e, plus_minus = _drawn(seed, f"{kind}: side", 1, basis), kind == "random signs"
    loss, limit, towards_low = _signs(kind, rounds, phase)
    C = _unit(loss * e + NOISE * _drawn(seed, f"{kind}: losses", rounds, basis, plus_minus))
    beside = NOISE * _drawn(seed, f"{kind}: constraints", rounds, basis, plus_minus)
    A = _unit(limit * e + beside * (kind in COMMON))
    center, aside = _flat(K.center), FAR_ASIDE if kind == "deadlock" else ASIDE
    low, high = (_flat(K.lmo(_point(K, d))) for d in (e, -e))
    s = center + aside * (np.where(towards_low, low, high) - center)
    A, b = like(A.reshape(rounds, *K.shape), K.center), like((A * s).sum(axis=1), K.center)
    stream = batch.Stream(Linear(like(C.reshape(rounds, *K.shape), K.center)), Affine(A, b))
    return Problem(
        "adversarial", K, stream, f"Losses and limits that turn against the learner: {kind}."
    )


def _drawn(
    seed: int, what: str, rounds: int, basis: types.Floats, plus_minus: bool = False
) -> types.Floats:
    drawn = randomness.generator(seed, what).standard_normal((rounds, len(basis)))
    return _unit((np.sign(drawn) if plus_minus else drawn) @ basis)


def _signs(kind: str, rounds: int, phase: int) -> tuple[Any, Any, Any]:
    """What stands before e in the losses and in the limits, and whether s lies towards the vertex
    with the least <e, x>: a column each, or one for all rounds.
    """
    t = np.arange(rounds)[:, None]
    turn = np.where(t // phase % 2, -1.0, 1.0)
    locked = t < phase
    by_turns = np.where(locked & (t % 2 == 1), -1.0, 1.0)
    return {
        "switching": (turn, 0.0, True),
        "opposing": (-1.0, 1.0, True),
        "random signs": (0.0, 0.0, True),
        "moving": (-turn, turn, True),
        "excluding": (-turn, turn, turn > 0),
        "deadlock": (np.where(locked, -1.0, 1.0), by_turns, locked & (by_turns > 0)),
    }[kind]


def _unit(rows: types.Floats) -> types.Floats:
    """Rows of length 1, or 0 if nothing but rounding is left of them: signs that all agree point
    across a simplex.
    """
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return cast(types.Floats, np.where(lengths > 1e-9, rows / np.maximum(lengths, 1e-9), 0.0))


def _flat(point: object) -> types.Floats:
    return to_numpy(point).reshape(-1).astype(np.float64)


def _point(K: ConvexSet, entries: types.Floats) -> types.Array:
    return like(entries.reshape(K.shape), K.center)
