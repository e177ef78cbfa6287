"""A gateway in front of six endpoints that answer the same requests: quick ones cost more, quotas
move, some have incidents, and the dollars of a day are limited.

    K = { x >= 0, sum x = 1 }                         shares of the requests of a minute
    f_t(x) = <latency_t, x>                           mean latency, in seconds
    g_t(x) = max_i x_i - quota_ti/requests_t          what is above the quota of an endpoint
    h_t(x) = requests_t <price_t, x> - plan           dollars above the plan of a minute, a budget

One round is a minute; round 0 is midnight, and the usual run is three days. Requests, in thousands,
rise and fall with the day. Latencies are an AR(1) process around LATENCY, and SLOW times as long
while an endpoint has an incident, which lasts about an hour; quotas come and go with periods of
their own. The budget of a day is SHARE of the way from what the cheapest endpoint would cost to
what the quickest would.
"""

from __future__ import annotations

import numpy as np

from tidewolf.core import batch, settings
from tidewolf.core.randomness import autoregressive_noise, generator
from tidewolf.core.types import Floats
from tidewolf.functions.linear import Affine, Capacity, Linear
from tidewolf.methods.budget import Budget
from tidewolf.problems.base import Problem, RandomSeed, Rounds, as_rounds, wave
from tidewolf.sets.simplices import Simplex

DAY, DAYS = 1440, 3
LATENCY = np.array([0.35, 0.45, 0.6, 0.8, 1.1, 1.5])  # seconds
PRICE = np.array([5.0, 3.8, 2.8, 2.0, 1.3, 0.8])  # dollars per thousand requests
QUOTA = np.array([0.5, 0.5, 0.55, 0.6, 0.8, 1.2])  # thousand requests per minute
SLOW, INCIDENT, EVERY = 4.0, 60, 1000  # how slow, for how long, how often: minutes
SHARE = 0.4
NOISE, MEMORY = 0.15, 0.97


@settings.validated
def gateway(rounds: Rounds = None, seed: RandomSeed = 0) -> Problem:
    """How to share requests between six endpoints, within quotas and a budget per day.

    A round is a minute; 4,320, three days, are usual.

    Parameters
    ----------
    rounds : int, optional
        The number of rounds. None: the usual number.
    seed : int, default 0
        The seed of the random numbers.

    Returns
    -------
    Problem
        The set, the stream and what they are called. `budgets` has the budget of a day.

    Examples
    --------
    >>> problem = tw.problems.gateway(rounds=60)
    >>> len(problem), problem.shape, problem.budgets[0].name
    (60, (6,), 'usd')
    """
    n = len(LATENCY)
    rounds = as_rounds(rounds, DAY * DAYS, 4 * n)
    minutes = np.arange(rounds)
    requests = wave(0.5, 1.5, minutes / DAY + 0.5)[:, None]
    prices = PRICE * np.exp(0.1 * autoregressive_noise(seed, "gateway prices", rounds, (n,), 0.9))
    spend = requests * prices
    total = float(DAY * (PRICE.min() + SHARE * (PRICE.max() - PRICE.min())))
    turns = minutes[:, None] / (300.0 + 170.0 * np.arange(n)) + np.arange(n) / n
    quotas = QUOTA * wave(0.7, 1.3, turns)
    plan = np.full(rounds, total / DAY)
    return Problem(
        "gateway",
        Simplex(n),
        batch.Stream(
            Linear(_latencies(rounds, seed)),
            Capacity(quotas / requests),
            budgets={"usd": Affine(spend, plan)},
        ),
        f"Shares of the requests of a minute for {n} endpoints, within their quotas and "
        f"{total:.0f} dollars per day.",
        tuple(f"endpoint {i + 1}" for i in range(n)),
        period=DAY,
        budgets=(Budget("usd", total=total, per=DAY),),
    )


def _latencies(rounds: int, seed: int) -> Floats:
    """Seconds per request, (rounds, endpoints)."""
    n = len(LATENCY)
    noise = autoregressive_noise(seed, "gateway latencies", rounds, (n,), MEMORY)
    latencies = LATENCY * np.exp(NOISE * noise)
    for i in range(n):
        draw, start = generator(seed, f"gateway incidents {i}"), 0
        while start < rounds:
            start += int(draw.exponential(EVERY))
            length = int(INCIDENT * draw.uniform(0.5, 1.5))
            latencies[start : start + length, i] *= SLOW
            start += length
    return np.asarray(latencies)
