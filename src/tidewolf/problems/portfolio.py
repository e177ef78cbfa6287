"""A portfolio that grows under a cap on its risk, day after day.

    K = { x >= 0, sum x = 1 }  shares of wealth in ASSETS assets, the first of them cash
    f_t(x) = -log <r_t, x>  r_t: what a unit of each is worth after the day
    g_t(x) = (<x, S_t x> / v_t - 1) / 2
        S_t: the covariance of that day's returns; v_t: the variance that may be borne

Returns are exp(drift + what is due to FACTORS common factors + what is an asset's own), all normal.
Each factor has calm and restless times of its own: its standard deviation moves between CALM and
RESTLESS with a period of its own, and S_t with it. Assets that lean on the factors more drift
upwards more. The cap v_t moves between STRICT and LOOSE, in parts of the variance that even shares
have on average.

Feasible in hindsight, by construction: cash does not move, so all in cash has variance 0. The
shares that grow most without the cap break it on most days; within it, growth is about half as
much.
"""

from __future__ import annotations

import numpy as np

from tidewolf.core import batch, settings
from tidewolf.core.randomness import generator
from tidewolf.functions.smooth import LogWealth, Quadratic
from tidewolf.problems.base import Problem, RandomSeed, Rounds, as_rounds, wave
from tidewolf.sets.simplices import Simplex

ROUNDS, ASSETS, FACTORS = 1000, 10, 3
# standard deviation of a factor a day; days between its restless times
CALM, RESTLESS, PERIODS = 0.004, 0.016, (61, 97, 149)
# of an asset alone; drift of cash a day; more of it for an asset that leans on the factors by 1
OWN, CASH, DRIFT = 0.006, 1e-4, 1e-3
# the cap, in parts of the variance that even shares have on average; days in which it comes and
# goes
STRICT, LOOSE, TURN = 0.5, 1.5, 120


@settings.validated
def portfolio(rounds: Rounds = None, seed: RandomSeed = 0) -> Problem:
    """A portfolio of ten assets: growth under a time-varying cap on the variance.

    The losses are logarithmic, the limits quadratic. A round is a day; 1,000 are usual.

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
    >>> problem = tw.problems.portfolio(rounds=48)
    >>> len(problem), problem.shape
    (48, (10,))
    """
    rounds = as_rounds(rounds, ROUNDS, ASSETS**2)
    t = np.arange(rounds)[:, None]
    leaning = generator(0, "portfolio assets").uniform(0.0, 1.0, (ASSETS - 1, FACTORS))
    leaning = np.vstack([np.zeros(FACTORS), leaning])
    own = np.where(np.arange(ASSETS) > 0, OWN, 0.0)
    turns = t / np.array(PERIODS) + np.arange(FACTORS) / FACTORS
    factor = CALM + (RESTLESS - CALM) * wave(0.0, 1.0, turns) ** 2
    drift = CASH + DRIFT * leaning.mean(axis=1)
    moves = factor * generator(seed, "portfolio factors").standard_normal((rounds, FACTORS))
    alone = own * generator(seed, "portfolio assets").standard_normal((rounds, ASSETS))
    returns = np.exp(drift + moves @ leaning.T + alone)

    covariance = np.einsum("if,tf,jf->tij", leaning, factor**2, leaning) + np.diag(own**2)
    # the variance of even shares on the average day, that is, over whole periods
    day = (CALM + (RESTLESS - CALM) * wave(0.0, 1.0, np.arange(1000) / 1000) ** 2) ** 2
    usual = float(np.mean(day)) * float((leaning.mean(axis=0) ** 2).sum())
    usual += float((own**2).sum()) / len(own) ** 2
    cap = usual * (STRICT + (LOOSE - STRICT) * (1 + np.sin(2 * np.pi * t / TURN)) / 2)
    risk = Quadratic(covariance / cap[..., None], np.zeros((rounds, ASSETS)), np.full(rounds, -0.5))
    return Problem(
        "portfolio",
        Simplex(ASSETS),
        batch.Stream(LogWealth(returns), risk),
        f"Shares of wealth in {ASSETS} assets, one of them cash, for growth under a cap on their "
        "variance that moves.",
        ("cash", *(f"asset {i}" for i in range(1, ASSETS))),
    )
