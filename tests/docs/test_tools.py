"""The digests of twelve runs are reproducible."""

from __future__ import annotations

from tools import digests


def test_twelve_runs_and_the_same_run_twice_is_equal() -> None:
    assert len(digests.RUNS) == 12
    first, other = "SinhaVaze on portfolio", "WangWanZhang on sdp"
    assert digests.digest(first) == digests.digest(first) != digests.digest(other)
