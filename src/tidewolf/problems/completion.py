"""Online matrix completion: what users think of items, from the ratings seen so far.

    K = { X : |X|_* <= TAU }  USERS x ITEMS; X_ij: the rating foretold, 0 in the middle of the scale
    f_t(X) = 1/2 sum over the items j rated of (X_ij - m_tj)^2   i: the user of the round
    g_t(X) = max over the items j shown of |X_ij| - b_tj
        what may be said: nothing stronger than b_tj

Users arrive: JOIN are there at first, another comes every PACE rounds until all are. In a round one
of those who are there, at random, is shown SHOWN items, popular ones more often, and rates FEW of
them or more. A rating is the product of the user's taste and the item's nature, RANK features each,
plus NOISE; tastes turn by DRIFT per round towards other ones. b_tj goes up and down between MILD
and BOLD, at a pace of its own for each of the GENRES that items belong to.

Feasible in hindsight, by construction: X = 0 satisfies every constraint with MILD to spare. The X
that fits best without limits breaks them in about two rounds of five.
"""

from __future__ import annotations

import math

import numpy as np

from tidewolf.core import batch, randomness, settings
from tidewolf.functions.entries import Range, Squared
from tidewolf.problems.base import Problem, RandomSeed, Rounds, as_rounds, wave
from tidewolf.sets.spectra import NuclearBall

ROUNDS, USERS, ITEMS = 1000, 20, 12
RANK, TAU = 2, 12.0  # features of a taste; the nuclear norm that is allowed
JOIN, PACE = 8, 20  # users that are there at first; rounds between two that come
SHOWN, FEW = 8, 3  # items shown per round; ratings per round at the least
NOISE, DRIFT = 0.3, 0.001  # standard deviation; radians per round
# what may be said, in ratings; rounds in which that comes and goes
GENRES, TURN = 3, 150
MILD, BOLD = 0.5, 2.0


@settings.validated
def completion(rounds: Rounds = None, seed: RandomSeed = 0) -> Problem:
    """Matrix completion: predict ratings of users who arrive one by one, within bounds.

    A point is a matrix of users and items in a nuclear ball; the losses are squared errors. 1,000
    rounds are usual.

    Parameters
    ----------
    rounds : int, optional
        The number of rounds. None: the usual number.
    seed : int, default 0
        The seed of the random numbers.

    Returns
    -------
    Problem
        The set, the stream and what they are called.

    Examples
    --------
    >>> problem = tw.problems.completion(rounds=48)
    >>> len(problem), problem.shape
    (48, (20, 12))
    """
    rounds = as_rounds(rounds, ROUNDS, 2 * ITEMS)
    world = randomness.generator(0, "completion world")
    tastes, others = world.standard_normal((2, USERS, RANK)) / math.sqrt(RANK)
    natures, popularity = world.standard_normal((ITEMS, RANK)), np.arange(1, ITEMS + 1) ** -0.5
    draws = randomness.generator(seed, "completion rounds").random((rounds, 2 + ITEMS))
    noise = NOISE * randomness.generator(seed, "completion noise").standard_normal((rounds, ITEMS))

    t, shape = np.arange(rounds)[:, None], (USERS, ITEMS)
    user = (draws[:, :1] * np.minimum(JOIN + t // PACE, USERS)).astype(np.int64)
    # of exponential waiting times the shortest
    shown = np.argsort(np.log(draws[:, 2:]) / popularity, axis=1)[:, -SHOWN:]
    rated = np.arange(SHOWN) < FEW + (draws[:, 1:2] * (SHOWN - FEW + 1)).astype(np.int64)
    taste = np.cos(DRIFT * t) * tastes[user[:, 0]] + np.sin(DRIFT * t) * others[user[:, 0]]
    ratings = (taste @ natures.T + noise)[t, shown]
    genre = shown % GENRES
    limits = wave(MILD, BOLD, t / (TURN + 20 * genre) + genre / GENRES)
    places = user * ITEMS + shown
    errors = Squared(np.where(rated, ratings, 0.0), np.where(rated, places, -1), shape)
    return Problem(
        "completion",
        NuclearBall(shape, TAU),
        batch.Stream(errors, Range(-limits, limits, places, shape)),
        f"Ratings of {ITEMS} items by {USERS} users who arrive one by one, foretold within limits "
        "on what may be said.",
    )
