"""`tidewolf paper`: what the theorems state holds in what it measures, and the page shows it."""

import numpy as np
import pytest

import tidewolf as tw
from tidewolf.cli.app import invoke
from tidewolf.report import paper as report
from tidewolf.report.paper import Size, study

SMALL = Size((64, 128), 2, 128, (128,), 3)


@pytest.fixture(scope="module", params=[None, tw.sets.L2Ball(2)], ids=["simplex", "ball"])
def found(request):
    return study(request.param, SMALL)


def test_measured_totals_stay_below_guarantees_and_calls_below_one_per_round(found):
    assert len(found.growths) == 3
    for each in found.growths:
        assert each.prefix <= 1.0
        for i, guarantee in enumerate(each.guarantees):
            if guarantee.regret is not None:
                assert each.regrets[i].max() <= guarantee.regret
                assert each.violations[i].max() <= guarantee.violation
    assert "No guarantee was exceeded" in report.verdict(found)


def test_a_broken_guarantee_is_the_verdict(found):
    first = found.growths[0]
    broken = first._replace(regrets=first.regrets + 1e6)
    assert first.learner in report.verdict(found._replace(growths=(broken, *found.growths[1:])))


def test_intervals_stay_below_their_bounds(found):
    assert [length for length, *_ in found.intervals][-1] == SMALL.interval_rounds
    for _, regret, violation in found.intervals:
        assert violation.violation <= violation.bound.violation
        if regret is not None:
            assert regret.regret[0] <= regret.bound.regret


def test_printed_constants_do_not_move_below_the_horizon_named(found):
    [printed] = found.printed
    assert printed.rounds < found.moves_from
    assert (printed.churn.any(), printed.oracle_calls) == (False, 0)


@pytest.mark.parametrize(
    ("exponent", "words"), [(0.5, "more slowly"), (0.75, "contains"), (1.0, "faster")]
)
def test_remarks_say_on_which_side_of_the_theorem_an_exponent_lies(found, exponent, words):
    noise = np.array([[0.99, 1.01], [1.01, 0.99], [0.99, 1.01]])
    T = (64, 256, 1024)
    totals = np.array(T)[:, None] ** exponent * noise
    nothing = found.growths[0].guarantees[0]._replace(regret=None, violation=None)
    more = {"guarantees": (nothing,) * 3, "exponents": (0.75, 0.875)}
    each = found.growths[0]._replace(horizons=T, regrets=totals, **more)
    assert words in report.remark(each, "regret")


def test_the_page_has_every_algorithm_with_its_code(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(report, "FAST", SMALL)
    (tmp_path / "mine.py").write_text("import tidewolf as tw\nK = tw.sets.Simplex(3)\n")
    words = ["paper", "--fast", "--set", f"{tmp_path}/mine.py:K", "--out", str(tmp_path)]
    assert invoke(words) == 0
    page = (tmp_path / "index.html").read_text()
    for number in range(1, 6):
        assert f"Algorithm {number}:" in page
    assert "def separating_hyperplane" in page
    assert "Simplex(n=3" in page
    assert str(tmp_path / "index.html") in capsys.readouterr().out.replace("\n", "")


WRONG = [["--fast", "--full"], ["--set", "math:pi"], ["--set", "nowhere.py:K"]]


@pytest.mark.parametrize("words", WRONG)
def test_wrong_options_are_one_line(words, capsys):
    assert invoke(["paper", *words]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
