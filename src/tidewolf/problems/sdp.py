"""Online semidefinite optimisation
(Garber & Kretzu 2024, Example II): the covariance of what an antenna array sends.

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
"""

from __future__ import annotations

import math

import numpy as np

from tidewolf.core import batch, randomness, settings
from tidewolf.core.types import Floats
from tidewolf.functions.linear import Linear, MaxAffine
from tidewolf.problems.base import Problem, RandomSeed, Rounds, as_rounds, wave
from tidewolf.sets.spectra import BoundedPSD

ROUNDS, ANTENNAS, POWER = 1000, 16, 1.0
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


def _gains(degrees: Floats, seed: int) -> Floats:
    """What each antenna counts for at each of these angles, (rounds, angles, antennas)."""
    rounds, angles = degrees.shape
    steps = randomness.autoregressive_noise(seed, "sdp fading", rounds, (angles, ANTENNAS), MEMORY)
    phases = np.pi * np.arange(ANTENNAS) * np.sin(np.radians(degrees))[..., None]
    pattern = math.sqrt(2 / ANTENNAS) * np.cos(phases)
    return np.asarray(pattern + FADING / math.sqrt(ANTENNAS) * steps)
