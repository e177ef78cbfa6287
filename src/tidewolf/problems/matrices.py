"""Problems whose points are matrices: what an antenna array sends, and ratings of users.

sdp: online semidefinite optimisation (Garber & Kretzu 2024, Example II): the covariance of what an
antenna array sends

    K = { X psd, tr X <= POWER }         n antennas, total power
    f_t(X) = - h_t' X h_t                minus the power that a moving user receives
    g_t(X) = max_i a_ti' X a_ti - b_ti   what reaches m protected receivers, above what they bear

The antennas stand in a line, half a wavelength apart. A receiver at angle phi has the gains
(2/n)^{1/2} cos(pi k sin phi), k = 0..n-1, and on top of them fading: an AR(1) process of standard
deviation FADING n^{-1/2} for every antenna. The user walks to and fro between USER - WALK and
USER + WALK degrees; the receivers sway by SWAY degrees around their own angles, two of them inside
the user's range. What each bears goes up and down between QUIET and LOUD parts of POWER, at a pace
of its own.

Feasible in hindsight, by construction: X = 0 satisfies every constraint with QUIET POWER to spare.
The covariance that is best for the user alone breaks the limits in most rounds.

completion: online matrix completion, what users think of items, from the ratings seen so far

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

import math

import numpy as np

from tidewolf.core import batch, randomness, settings, types
from tidewolf.functions import Linear, MaxAffine, Range, Squared
from tidewolf.problems.base import Problem, RandomSeed, Rounds, as_rounds, wave
from tidewolf.sets.spectra import BoundedPSD, NuclearBall

ROUNDS = 1000  # the usual number of rounds
ANTENNAS, POWER = 16, 1.0
USER, WALK, LAP = 35.0, 10.0, 300  # degrees, degrees, rounds of one walk to and fro
RECEIVERS = (12.0, 29.0, 41.0, 55.0, 68.0)  # degrees
SWAY, SWING = 1.5, 170  # degrees, rounds
QUIET, LOUD, SHIFT = 0.02, 0.10, 240  # parts of POWER, parts of POWER, rounds
FADING, MEMORY = 0.2, 0.95  # of gains; how much of it stays from round to round


@settings.validated
def sdp(rounds: Rounds = None, seed: RandomSeed = 0) -> Problem:
    """Beamforming: 16 antennas send to a moving user, with limits on interference elsewhere.

    A point is the covariance of what they send, a positive semidefinite matrix. 1,000 rounds are
    usual.

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
    >>> problem = tw.problems.sdp(rounds=48)
    >>> len(problem), problem.shape
    (48, (16, 16))
    """
    rounds = as_rounds(rounds, ROUNDS, ANTENNAS**2)
    t, own = np.arange(rounds)[:, None], np.arange(len(RECEIVERS))
    user = USER + WALK * np.sin(2 * np.pi * t / LAP)
    sways = np.array(RECEIVERS) + SWAY * np.sin(2 * np.pi * (t / (SWING + 20 * own) + own / 3))
    gains = _gains(np.concatenate([user, sways], axis=1), seed)
    h, a = gains[:, 0], gains[:, 1:]
    bears = POWER * wave(QUIET, LOUD, t / (SHIFT + 30 * own) + own / 5)
    limits = MaxAffine(a[..., :, None] * a[..., None, :], bears)
    return Problem(
        "sdp",
        BoundedPSD(ANTENNAS, POWER),
        batch.Stream(Linear(-h[:, :, None] * h[:, None, :]), limits),
        f"The covariance of what {ANTENNAS} antennas send to a moving user, past {len(RECEIVERS)} "
        "receivers that must not hear much of it.",
    )


def _gains(degrees: types.Floats, seed: int) -> types.Floats:
    """What each antenna counts for at each of these angles, (rounds, angles, antennas)."""
    rounds, angles = degrees.shape
    steps = randomness.autoregressive_noise(seed, "sdp fading", rounds, (angles, ANTENNAS), MEMORY)
    phases = np.pi * np.arange(ANTENNAS) * np.sin(np.radians(degrees))[..., None]
    pattern = math.sqrt(2 / ANTENNAS) * np.cos(phases)
    return np.asarray(pattern + FADING / math.sqrt(ANTENNAS) * steps)


USERS, ITEMS = 20, 12
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
