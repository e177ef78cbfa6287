"""Problems whose points are shares: of wealth, of a day's energy, of requests.

portfolio: a portfolio that grows under a cap on its risk, day after day

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

scheduling: a day's energy, bought hour by hour, while the grid has more or less room

    K = { x : 0 <= x_h <= CAP, sum x = 1 }            shares of the day's energy in its 24 hours
    f_t(x) = <price_t, x>                             what they cost
    g_t(x) = max_j sum_{h in G_j} x_h - b_tj
        what is above the room of that day in four overlapping groups of hours

One round is a day; round 0 is January 1st. A price is a base, a morning and an evening peak, higher
in winter, less what the sun gives at noon, more in summer; and noise, an AR(1) process for every
hour. The room in a group comes and goes with a period of its own, and with noise of its own,
between ROOM and ROOM + SWING times the group's share of the day.

Feasible in hindsight, by construction: ROOM > 1, so a plan that buys evenly, 1/24 every hour, fits
every day. The cheapest plan alone does not, on any day, cheap hours being neighbours; the best
fixed plan that does costs about a quarter more.

gateway: requests to six endpoints; quick ones cost more, quotas move, some have incidents, and the
dollars of a day are limited

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

import numpy as np

from tidewolf.core import batch, settings, types
from tidewolf.core.randomness import autoregressive_noise, generator
from tidewolf.functions import Affine, Capacity, Linear, LogWealth, MaxAffine, Quadratic
from tidewolf.methods.budget import Budget
from tidewolf.problems.base import Problem, RandomSeed, Rounds, as_rounds, wave
from tidewolf.sets import CappedSimplex, Simplex

ROUNDS = 1000  # the usual number of days
ASSETS, FACTORS = 10, 3
# standard deviation of a factor a day; days between its restless times
CALM, RESTLESS, CYCLES = 0.004, 0.016, (61, 97, 149)
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
    turns = t / np.array(CYCLES) + np.arange(FACTORS) / FACTORS
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


# --- energy ---------------------------------------------------------------------------------------

HOURS, YEAR = 24, 365
CAP = 1 / 6  # of the day's energy in any hour
# hours of a group, the last excluded
GROUPS = {"night": (0, 7), "morning": (5, 11), "noon": (10, 16), "evening": (15, 23)}
PERIODS = (29, 37, 53, 71)  # days in which the room in a group comes and goes
ROOM, SWING = 1.25, 0.75  # in shares of the day
# euros for the day's energy: always; at the peaks; what the sun takes off at noon
BASE, PEAK, SUN = 60.0, 35.0, 30.0
PRICE_NOISE, STAYS = 8.0, 0.7  # standard deviation of a price; how much of it stays from day to day


@settings.validated
def scheduling(rounds: Rounds = None, seed: RandomSeed = 0) -> Problem:
    """When to buy a day's energy at changing prices, within the capacity of the grid.

    A round is a day; 1,000 are usual.

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
    >>> problem = tw.problems.scheduling(rounds=48)
    >>> len(problem), problem.shape
    (48, (24,))
    """
    rounds = as_rounds(rounds, ROUNDS, HOURS)
    hours, (first, end) = np.arange(HOURS), np.array(list(GROUPS.values())).T[..., None]
    member = ((first <= hours) & (hours < end)).astype(np.float64)
    rows = np.broadcast_to(member, (rounds, *member.shape))
    limits = MaxAffine(rows, _room(rounds, seed) * member.sum(axis=1) / HOURS)
    return Problem(
        "scheduling",
        CappedSimplex(HOURS, CAP),
        batch.Stream(Linear(_prices(rounds, seed)), limits),
        f"Shares of a day's energy in its {HOURS} hours, at most {CAP:.3g} in each, and in "
        f"{', '.join(GROUPS)} what the grid has room for.",
        tuple(f"{hour}:00" for hour in range(HOURS)),
    )


def _prices(rounds: int, seed: int) -> types.Floats:
    """What the day's energy would cost in each hour, (rounds, hours)."""
    hour, winter = np.arange(HOURS), np.cos(2 * np.pi * np.arange(rounds)[:, None] / YEAR)
    peaks = np.exp(-(((hour - 8) / 2) ** 2)) + 1.3 * np.exp(-(((hour - 19) / 2.5) ** 2))
    sun = np.exp(-(((hour - 13) / 3) ** 2))
    usual = BASE + PEAK * (1 + 0.3 * winter) * peaks - SUN * (1 - 0.6 * winter) * sun
    noise = autoregressive_noise(seed, "scheduling prices", rounds, (HOURS,), STAYS)
    return np.asarray(usual + PRICE_NOISE * noise)


def _room(rounds: int, seed: int) -> types.Floats:
    """What fits into each group, in units of its share of the day, (rounds, groups)."""
    turns = np.arange(rounds)[:, None] / np.array(PERIODS) + np.arange(len(PERIODS)) / 4
    wave = np.cos(2 * np.pi * turns)
    noise = autoregressive_noise(seed, "scheduling room", rounds, (len(PERIODS),), STAYS)
    return np.asarray(ROOM + SWING * np.clip(0.5 + 0.4 * wave + 0.15 * noise, 0.0, 1.0))


# --- requests -------------------------------------------------------------------------------------

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
    return Problem(
        "gateway",
        Simplex(n),
        batch.Stream(
            Linear(_latencies(rounds, seed)),
            Capacity((QUOTA * wave(0.7, 1.3, turns)) / requests),
            budgets={"usd": Affine(spend, np.full(rounds, total / DAY))},
        ),
        f"Shares of the requests of a minute for {n} endpoints, within their quotas and "
        f"{total:.0f} dollars per day.",
        tuple(f"endpoint {i + 1}" for i in range(n)),
        period=DAY,
        budgets=(Budget("usd", total=total, per=DAY),),
    )


def _latencies(rounds: int, seed: int) -> types.Floats:
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
