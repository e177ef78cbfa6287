"""examples/haproxy with a real HAProxy: its weights are the decisions, every round is observed, and
the comparison is a table.
"""

import asyncio
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from serving import call

FOLDER = Path(__file__).parents[1] / "examples" / "haproxy"
SECONDS, ROUND, MAINTENANCE, NO_SERVICE = 2.0, 0.1, 3, 5


class Played(NamedTuple):
    """A round: the decision, what was observed, and HAProxy's weights at its end."""

    decision: dict[str, float]
    observed: dict[str, dict[str, float]]
    weights: dict[str, int]


@pytest.fixture(scope="module")
def compare():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        import compare

        if compare.HAPROXY is None:
            pytest.skip("There is no HAProxy here")
        yield compare
        for name in ("compare", "controller"):
            patch.delitem(sys.modules, name)


@pytest.fixture(scope="module")
def measured(compare, served):
    """Servers and latencies by way, and all rounds; oslo is in maintenance in one of them, and
    another one is tried without a service first.
    """
    rounds, Controller = [], compare.Controller

    class Watched(Controller):
        def play(self, seconds):
            state = "disable" if len(rounds) == MAINTENANCE else "enable"
            self.command(f"{state} server tidewolf/oslo")
            if len(rounds) == NO_SERVICE:
                away = Controller(self.haproxy, self.backend, self.terms, "http://[::1]:1")
                with pytest.raises(OSError, match=r"refused|address"):
                    away.play(seconds)
                assert self.weights() == rounds[-1].weights
            rounds.append(Played(*super().play(seconds), self.weights()))

        def weights(self):
            return {name: int(row["weight"]) for name, row in self.statistics().items()}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare, "Controller", Watched)
        patch.setattr(compare, "ROUND", ROUND)
        servers, times, count = asyncio.run(compare.measure(SECONDS, served.url))
    assert count == len(rounds) > NO_SERVICE
    return servers, times, rounds


def test_weights_are_the_decisions_and_change(measured, compare):
    *_, rounds = measured
    for t, (decision, _, weights) in enumerate(rounds):
        up = set(decision) - ({"oslo"} if t == MAINTENANCE else set())  # which keeps its old weight
        assert list(weights) == list(compare.SERVERS)
        assert all(weights[name] == round(256 * decision[name]) for name in up)
    assert len({tuple(each.weights.values()) for each in rounds}) > len(rounds) // 2


def test_every_round_is_observed(measured, served):
    *_, rounds = measured
    session = call(served.url, "GET", "/v1/sessions/haproxy").body
    assert (session["rounds"], session["pending"]) == (len(rounds), [])


def test_a_server_in_maintenance_has_no_share(measured):
    *_, rounds = measured
    assert rounds[MAINTENANCE].decision["oslo"] == 0.0 < rounds[0].decision["oslo"]


def test_costs_are_price_and_latency_and_capacities_quota_per_rate(measured, compare):
    """A server sleeps no shorter than its latency, of which HAProxy counts whole milliseconds. No
    quota is below 0.6 or above 1.4 of its mean, and no round shorter than its sleep.
    """
    _, times, rounds = measured
    count, largest = len(times["tidewolf"]), 0.0
    for _, observed, _ in rounds:
        rates = []
        for name, (price, latency, quota) in compare.SERVERS.items():
            assert observed["costs"][name] >= price + 100.0 * (0.7 * latency - 0.002)
            rates.append(quota / observed["capacities"][name])
        assert max(rates) <= 1.4 / 0.6 * min(rates)
        assert 0.6 * max(rates) <= count / ROUND
        largest = max(largest, *rates)
    assert 1.4 * largest >= 0.2 * count / SECONDS  # far below the mean, if machines are slow


def test_all_requests_are_answered_and_counted_in_a_table_of_80_columns(measured, compare):
    servers, times, _ = measured
    arrivals = len(list(compare.World(SECONDS).arrivals()))
    for way in compare.WAYS:
        assert len(times[way]) == arrivals == sum(each.requests for each in servers[way])
        assert max(times[way]) < float("inf")
        assert min(times[way]) >= 0.7 * 0.025
    lines = compare.table(servers, times).splitlines()
    assert len(lines) == 1 + len(compare.WAYS)
    assert max(map(len, lines)) <= 80
