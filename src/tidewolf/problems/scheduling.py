"""A day's energy, bought hour by hour: when to buy, day after day, while the grid has more or less
room at night, noon and evening.

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
"""

from __future__ import annotations

import numpy as np

from tidewolf.core import batch, settings
from tidewolf.core.randomness import autoregressive_noise
from tidewolf.core.types import Floats
from tidewolf.functions.linear import Linear, MaxAffine
from tidewolf.problems.base import Problem, RandomSeed, Rounds, as_rounds
from tidewolf.sets.simplices import CappedSimplex

ROUNDS, HOURS, YEAR = 1000, 24, 365
CAP = 1 / 6  # of the day's energy in any hour
# hours of a group, the last excluded
GROUPS = {"night": (0, 7), "morning": (5, 11), "noon": (10, 16), "evening": (15, 23)}
PERIODS = (29, 37, 53, 71)  # days in which the room in a group comes and goes
ROOM, SWING = 1.25, 0.75  # in shares of the day
# euros for the day's energy: always; at the peaks; what the sun takes off at noon
BASE, PEAK, SUN = 60.0, 35.0, 30.0
NOISE, MEMORY = 8.0, 0.7  # standard deviation of a price; how much of it stays from day to day


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


def _prices(rounds: int, seed: int) -> Floats:
    """What the day's energy would cost in each hour, (rounds, hours)."""
    hour, winter = np.arange(HOURS), np.cos(2 * np.pi * np.arange(rounds)[:, None] / YEAR)
    peaks = np.exp(-(((hour - 8) / 2) ** 2)) + 1.3 * np.exp(-(((hour - 19) / 2.5) ** 2))
    sun = np.exp(-(((hour - 13) / 3) ** 2))
    usual = BASE + PEAK * (1 + 0.3 * winter) * peaks - SUN * (1 - 0.6 * winter) * sun
    noise = autoregressive_noise(seed, "scheduling prices", rounds, (HOURS,), MEMORY)
    return np.asarray(usual + NOISE * noise)


def _room(rounds: int, seed: int) -> Floats:
    """What fits into each group, in units of its share of the day, (rounds, groups)."""
    turns = np.arange(rounds)[:, None] / np.array(PERIODS) + np.arange(len(PERIODS)) / 4
    wave = np.cos(2 * np.pi * turns)
    noise = autoregressive_noise(seed, "scheduling room", rounds, (len(PERIODS),), MEMORY)
    return np.asarray(ROOM + SWING * np.clip(0.5 + 0.4 * wave + 0.15 * noise, 0.0, 1.0))
