"""Tournaments: numbers of single runs, frontiers and their laws, refusals that stay alone, files,
and the command.
"""

import json
import math
from datetime import UTC, datetime
from functools import partial
from html import escape

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidewolf as tw
from tidewolf.baselines import SinhaVaze
from tidewolf.cli import main
from tidewolf.core import errors
from tidewolf.evaluation import comparison
from tidewolf.evaluation.comparison import TABLES, Entry, Point, Venue, gap, saving, shortfall
from tidewolf.evaluation.formatting import applying
from tidewolf.learners import BanditPrimalDual, LyapunovDescent, PrimalDual
from tidewolf.problems import adversarial, routing
from tidewolf.report import comparison as report

ROUNDS = 60
CAUTIONS = (1.0, 10.0, 100.0)


def point(regret, violation):
    return Point(1.0, None, regret, violation, 0.0, 0.0, 0.0)


points = st.builds(point, st.floats(-10.0, 10.0), st.one_of(st.just(0.0), st.floats(1e-6, 10.0)))
frontiers, scales = st.lists(points, min_size=1, max_size=6), st.floats(0.01, 100.0)


def test_targets_are_a_curve_of_their_own_without_a_caution(tmp_path):
    problem = routing(rounds=ROUNDS)
    learners = [LyapunovDescent, SinhaVaze, partial(LyapunovDescent, target_violation=0.5)]
    named = dict(zip(("descent", "exact", "given"), learners, strict=True))
    found = tw.compare(named, [problem], cautions=[3.0, 30.0], targets=[0.1, 0.01])
    assert found.learners == ("descent", "descent with a target", "exact", "given")
    aimed = found.frontier(problem.name, "descent with a target")
    knobs = [(p.knob, p.value, p.caution) for p in aimed]
    assert knobs == [("target_violation", 0.01, None), ("target_violation", 0.1, None)]
    for at in aimed:
        own = tw.run(LyapunovDescent(problem.K, target_violation=at.value), problem.stream)
        assert at.violation == pytest.approx(own.violations.mean(), rel=1e-9)
    assert not any(p.target_violation for p in found.entries if p.learner == "exact")
    assert not found.failures, "a learner with a target of its own is not played at cautions"
    assert [p.value for p in found.frontier(problem.name, "given")] == [0.01, 0.1]
    found.save(tmp_path)
    assert tw.Comparison.load(tmp_path).frontier(problem.name, "descent with a target") == aimed


@given(frontiers, scales)
def test_a_frontier_matches_itself(ours, scale):
    assert shortfall(ours, ours, scale) <= 0.0
    # nobody is above its own least regret, and someone has it
    assert min(gap(each, ours, scale) for each in ours) == 0.0
    assert saving(ours, ours) == 1.0


@given(frontiers, scales, st.floats(0.01, 5.0), st.floats(1.2, 5.0))
def test_more_of_both_is_a_gap(ours, scale, regret, factor):
    worse = [point(p.regret + regret, factor * p.violation) for p in ours]
    assert min(gap(each, ours, scale) for each in worse) >= 0.9 * regret / scale
    assert shortfall(worse, ours, scale) >= 0.9 * regret / scale
    assert shortfall(ours, worse, scale) <= -0.9 * regret / scale
    assert saving(ours, worse) >= (1.0 if any(p.violation == 0.0 for p in ours) else 0.999 * factor)


@given(frontiers, frontiers, scales, st.floats(0.1, 10.0))
def test_shares_do_not_depend_on_units(ours, baseline, scale, unit):
    scaled = [[point(unit * p.regret, p.violation) for p in side] for side in (ours, baseline)]
    due = pytest.approx(gap(ours[0], baseline, scale), abs=1e-9)
    assert gap(scaled[0][0], scaled[1], unit * scale) == due
    plain = pytest.approx(shortfall(ours, baseline, scale), abs=1e-9)
    assert shortfall(*scaled, unit * scale) == plain


def test_gap_shortfall_and_saving_by_hand():
    baseline = [point(5.0, 1.0), point(3.0, 2.0), point(1.0, 4.0)]
    assert gap(point(3.5, 1.9), baseline, 10.0) == pytest.approx(0.05), "1.1 times our violation"
    assert gap(point(3.5, 1.7), baseline, 10.0) == pytest.approx(-0.15)
    assert gap(point(6.0, 0.1), baseline, 10.0) == pytest.approx(0.1), "the most careful counts"
    assert [gap(point(regret, 0.1), baseline, 0.0) for regret in (5.0, 6.0)] == [0.0, math.inf]
    ends = [baseline[0], baseline[2]]
    assert shortfall([point(5.5, 1.1), point(0.0, 9.0)], ends, 10.0) == pytest.approx(0.45)
    assert shortfall([point(-9.0, 1.2)], ends, 10.0) == math.inf, "never as careful"
    steps = [point(0.0, 8.0), point(1.0, 4.0), point(2.0, 2.0)]
    assert saving([point(1.0, 1.0)], steps) == pytest.approx(math.sqrt(8.0)), "4x at 1, 2x at 2"
    assert saving([point(-1.0, 16.0), point(1.5, 1.0)], steps) == pytest.approx(1.0)
    assert saving([point(0.0, 0.0)], [point(0.0, 1.0)]) == math.inf


@pytest.fixture(scope="module")
def compared():
    learners = [LyapunovDescent, SinhaVaze, PrimalDual]
    swept = {"cautions": CAUTIONS, "budgets": (1, 10), "seeds": (0, 1)}
    return tw.compare(learners, [partial(routing, ROUNDS)], **swept)


def test_the_numbers_are_those_of_single_runs(compared):
    problem, asked = routing(ROUNDS, seed=1), ("LyapunovDescent", 10.0, 1.0, 1)
    (entry,) = [e for e in compared.entries if (e.learner, e.caution, e.budget, e.seed) == asked]
    learner = LyapunovDescent(problem.K, horizon=ROUNDS, caution=10.0, calls_per_round=1.0)
    run = tw.run(learner, problem.stream)
    assert entry.regret == (run.regret[0] / ROUNDS, run.regret[1] / ROUNDS)
    assert (entry.violation, entry.loss) == (run.violations.mean(), run.losses.mean())
    assert (entry.calls, entry.infeasibility) == (run.oracle_calls / ROUNDS, run.max_infeasibility)
    assert (entry.certificate, entry.failure) == (run.certificate.holds, "")
    (venue,) = [v for v in compared.venues if v.seed == 1]
    best = run.comparator
    assert (venue.lower, venue.upper) == (best.lower / ROUNDS, best.upper / ROUNDS)


def test_what_is_not_swept_is_as_the_learner_has_it():
    (entry,) = tw.compare(LyapunovDescent, adversarial(10), budgets=None).entries
    learner = LyapunovDescent(tw.sets.Simplex(2))
    assert (entry.caution, entry.budget) == (learner.caution, learner.calls_per_round)


def test_the_regret_counts_by_its_upper_end():
    venue = Venue("s", 0, 5, 1.0, math.inf, None)
    entry = Entry("s", "L", 0, None, None, 1.0, (-math.inf, 2.0), 0.5, 0.0, 0.0, 0.0, None)
    found = tw.Comparison((venue,), (entry,))
    assert [(p.regret, p.violation) for p in found.frontier("s", "L")] == [(2.0, 0.5)]
    assert found.scale("s") == 1.0, "the lower end, where no feasible point is known"


def test_each_plays_what_it_has_a_setting_for(compared):
    every, played = compared.entries, {}
    for e in every:
        played.setdefault(e.learner, set()).add((e.caution, e.budget))
    every = {(caution, budget) for caution in CAUTIONS for budget in (1.0, 10.0)}
    assert played["LyapunovDescent"] == every
    assert played["SinhaVaze"] == {(caution, None) for caution in CAUTIONS}
    assert played["PrimalDual"] == {(None, 1.0), (None, 10.0)}
    assert len(compared.entries) == 2 * (6 + 3 + 2)


def test_points_are_means_over_seeds(compared):
    found = compared.frontier("routing", "LyapunovDescent", 10.0)
    assert [(p.caution, p.budget) for p in found] == [(caution, 10.0) for caution in CAUTIONS]
    asked = ("LyapunovDescent", 1.0, 10.0)
    group = [e for e in compared.entries if (e.learner, e.caution, e.budget) == asked]
    assert len(group) == 2
    assert found[0].regret == pytest.approx(np.mean([e.regret[1] for e in group]))
    assert found[0].violation == pytest.approx(np.mean([e.violation for e in group]))
    assert len(compared.frontier("routing", "LyapunovDescent")) == 6
    exact = compared.frontier("routing", "SinhaVaze")
    assert compared.frontier("routing", "SinhaVaze", 10.0) == exact


def test_time_limits_both_sides(compared):
    every = compared.frontier("routing", "LyapunovDescent")
    middle = sorted(p.seconds for p in every)[2]
    quick = compared.frontier("routing", "LyapunovDescent", seconds=middle)
    assert quick == tuple(p for p in every if p.seconds <= middle)
    assert compared.frontier("routing", "SinhaVaze", seconds=0.0) == ()
    assert compared.ranking("routing", "LyapunovDescent", seconds=0.0)[3:] == ((), *4 * [None])


def test_learners_are_held_against_the_rival(compared):
    scale = np.mean([v.upper for v in compared.venues])
    ours, theirs = (compared.frontier("routing", who) for who in ("PrimalDual", "SinhaVaze"))
    assert compared.baseline == "SinhaVaze"
    assert compared.scale("routing") == pytest.approx(scale)
    found = compared.ranking("routing", "PrimalDual")
    assert found.gaps == tuple(gap(p, theirs, scale) for p in ours)
    assert (found.gap, found.shortfall) == (max(found.gaps), shortfall(ours, theirs, scale))
    assert found.saving == saving(ours, theirs)
    assert compared.ranking("routing", "SinhaVaze").shortfall <= 0.0
    back = compared.ranking("routing", "SinhaVaze", "PrimalDual").saving
    assert back == pytest.approx(1.0 / found.saving)


def test_a_refused_run_stays_alone():
    def picky(K, horizon, caution=1.0):
        if caution > 5.0:
            raise errors.NotSupported(f"No caution of {caution:g} here.")
        return LyapunovDescent(K, horizon=horizon, caution=caution)

    learners = {"picky": picky, "LyapunovDescent": LyapunovDescent}
    found = tw.compare(learners, adversarial(30), cautions=(1.0, 10.0))
    (failed,) = found.failures
    assert (failed.learner, failed.caution) == ("picky", 10.0)
    assert failed.failure == "No caution of 10 here."
    assert failed.regret is failed.violation is failed.seconds is failed.certificate is None
    assert [p.caution for p in found.frontier("adversarial", "picky")] == [1.0]
    assert len(found.frontier("adversarial", "LyapunovDescent")) == 2
    assert "picky on adversarial, 1 run: No caution of 10 here." in repr(found)
    bug = {"broken": lambda K, horizon: 1 / 0}
    with pytest.raises(ZeroDivisionError):
        tw.compare(bug, adversarial(30))


def test_a_stream_without_a_feasible_point_has_frontiers_of_the_loss_and_says_why():
    problem = partial(routing, 40, feasible=False)
    found = tw.compare([LyapunovDescent, SinhaVaze], problem, cautions=CAUTIONS)
    assert found.venues[0].feasible is False
    assert found.measure("routing") == "loss"
    assert all(e.regret is None and e.violation > 0.0 for e in found.entries)
    points = found.frontier("routing", "LyapunovDescent")
    mine = [e for e in found.entries if e.learner == "LyapunovDescent"]
    assert [(p.regret, p.level, p.loss) for p in points] == [(None, e.loss, e.loss) for e in mine]
    assert found.scale("routing") == abs(min(e.loss for e in found.entries))
    theirs = found.frontier("routing", "SinhaVaze")
    gaps = tuple(gap(p, theirs, found.scale("routing")) for p in points)
    assert found.ranking("routing", "LyapunovDescent").gaps == gaps
    assert len(found.steps("routing")) == 2
    assert "in % of the least mean loss of any point" in repr(found)
    assert "No fixed decision satisfies every constraint: those of rounds " in repr(found)


def test_runs_stand_where_the_comparator_fails(monkeypatch):
    def fails(*_):
        raise errors.SolverFailed("No luck today.")

    monkeypatch.setattr("tidewolf.experiments.jobs.best_in_hindsight", fails)
    found = tw.compare([LyapunovDescent, SinhaVaze], adversarial(20))
    told = [(e.failure, e.regret, e.violation is None) for e in found.entries]
    assert told == 2 * [("", None, False)]
    assert [p.loss for p in found.frontier("adversarial", "SinhaVaze")] == [found.entries[1].loss]
    assert "adversarial: No luck today." in repr(found)
    assert json.dumps(found.summary(), allow_nan=False)


def test_a_point_counts_where_every_seed_was_run():
    def moody(K, horizon, caution=3.0, seed=0):
        if seed == 1:
            raise errors.NotSupported("Not this seed.")
        return LyapunovDescent(K, horizon=horizon, caution=caution)

    found = tw.compare({"moody": moody}, adversarial(20), seeds=(0, 1))
    assert [(e.caution, e.failure) for e in found.entries] == [(3.0, ""), (3.0, "Not this seed.")]
    assert found.frontier("adversarial", "moody") == ()


def test_a_seed_that_changes_nothing_is_not_played_again():
    found = tw.compare([LyapunovDescent, BanditPrimalDual], adversarial(40), seeds=(3, 4))
    bandit = [("BanditPrimalDual", seed) for seed in (3, 4)]
    assert [(e.learner, e.seed) for e in found.entries] == [("LyapunovDescent", 3), *bandit]
    dice = [e.loss for e in found.entries if e.learner == "BanditPrimalDual"]
    assert dice[0] != dice[1]
    assert len(found.venues) == 1


def test_progress_tells_which_run_is_under_way():
    told, learners = [], [LyapunovDescent, SinhaVaze]
    tw.compare(learners, adversarial(30), progress=lambda *news: told.append(news))
    last = [step for step, moment in told if moment.rounds_done == 30]
    ends = [(step.entry.learner, step.number, step.runs) for step in last]
    assert ends == [("LyapunovDescent", 1, 2), ("SinhaVaze", 2, 2)]


def test_files_give_the_same_comparison_again(compared, tmp_path):
    compared.save(tmp_path / "new" / "folder")
    table, plain = sorted((tmp_path / "new" / "folder").iterdir())
    back = tw.Comparison.load(tmp_path / "new" / "folder")
    assert (back, repr(back)) == (compared, repr(compared))
    assert back.summary() == compared.summary() == json.loads(plain.read_text())
    assert len(table.read_text().splitlines()) == 1 + len(compared.entries)


def test_infinite_ends_survive_the_file(tmp_path):
    ends = [(-math.inf, math.inf, None), (math.inf, math.inf, False), (1.0, math.inf, None)]
    venues = tuple(Venue("s", seed, 5, *known) for seed, known in enumerate(ends))
    played = Entry("s", "L", 0, None, None, 1.0, (-math.inf, 2.0), 0.0, 0.0, 0.0, 0.0, None)
    found = tw.Comparison(venues, (played, Entry("s", "L", 1, None, None, failure="No.")))
    found.save(tmp_path)
    assert tw.Comparison.load(tmp_path) == found


def test_nothing_is_overwritten_unless_forced(compared, tmp_path):
    (tmp_path / "comparison.csv").write_text("mine")
    with pytest.raises(errors.InvalidInput, match="another folder"):
        compared.save(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["comparison.csv"]
    compared.save(tmp_path, force=True)
    assert tw.Comparison.load(tmp_path) == compared
    with pytest.raises(errors.InvalidInput, match="is a file"):
        compared.save(tmp_path / "comparison.csv")


def test_files_of_others_are_refused(tmp_path):
    with pytest.raises(errors.InvalidInput, match="no comparison"):
        tw.Comparison.load(tmp_path)
    heads = ('{"format": 1}', "[", '{"format": 99}')
    kinds = (errors.OlderFormat, errors.BrokenFile, errors.NewerFormat)
    for text, error in zip(heads, kinds, strict=True):
        (tmp_path / "comparison.json").write_text(text)
        with pytest.raises(error):
            tw.Comparison.load(tmp_path)


def test_pandas_has_a_row_for_each_run(compared):
    pandas, frame = pytest.importorskip("pandas"), compared.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["violation"]) == [e.violation for e in compared.entries]
    assert list(frame["regret_upper"]) == [e.regret[1] for e in compared.entries]


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"learners": []}, errors.InvalidInput, "learner"),
        ({"learners": [partial(LyapunovDescent)]}, errors.InvalidInput, "mapping"),
        ({"learners": {"mine": 3}}, errors.WrongType, "mine"),
        ({"streams": []}, errors.InvalidInput, "stream"),
        ({"streams": [3]}, errors.WrongType, "a Problem"),
        ({"streams": [adversarial(5), adversarial(6)]}, errors.InvalidInput, "Two streams"),
        ({"cautions": []}, errors.InvalidInput, "caution"),
        ({"cautions": [0.0]}, errors.InvalidInput, "A caution must be greater than 0"),
        ({"budgets": [math.nan]}, errors.InvalidInput, "A budget"),
        ({"seeds": [-1]}, errors.InvalidInput, "seed"),
    ],
)
def test_bad_input_is_refused_before_anything_is_played(given, error, said):
    def never(step, moment):
        raise AssertionError

    good = {"learners": [LyapunovDescent], "streams": adversarial(5)}
    with pytest.raises(error, match=said):
        tw.compare(**good | given, progress=never)


def test_unknown_names_are_refused(compared):
    with pytest.raises(errors.InvalidInput, match="rooting"):
        compared.frontier("rooting", "SinhaVaze")
    with pytest.raises(errors.InvalidInput, match="Sinha"):
        compared.ranking("routing", "LyapunovDescent", "Sinha")


# --- the page and the command ---------------------------------------------------------------------


def test_the_page_stands_alone_and_says_every_standing(compared):
    text = report.comparison_page(compared, date=datetime(2026, 1, 2, tzinfo=UTC))
    assert text == report.comparison_page(compared, date=datetime(2026, 1, 2, tzinfo=UTC))
    assert "http" not in text
    assert not any(f"<{tag}" in text for tag in ("link", "img", "iframe"))
    assert text.count("<figure") == 1
    points = sum(len(ranking.points) for ranking in compared.rankings())
    assert text.count("<tr>") == 2 * (1 + len(compared.rankings())) + 1 + points
    assert "seeds 0, 1" in text
    for ranking in compared.rankings():
        assert escape(comparison.ranking_name(ranking)) in text
        for column in (column for _, columns in TABLES for column in applying(columns, [ranking])):
            cell = column.cell(ranking)
            assert all(escape(part) in text for part in (column.title, *cell.split(" to ")))


def test_nothing_given_becomes_markup():
    learners = {"<i>": LyapunovDescent, "refused": lambda K, horizon: SinhaVaze(3)}
    found = tw.compare(learners, {"<script>": adversarial(20)})
    text = report.comparison_page(found, date=datetime(2026, 1, 2, tzinfo=UTC))
    assert text.count("<script>") == 1
    assert "<i>" not in text
    assert "refused on &lt;script&gt;, 1 run: SinhaVaze needs a set" in text


@pytest.fixture
def short(tmp_path):
    words = "compare adversarial --rounds 40 --cautions 1,10 --out"
    return [*words.split(), str(tmp_path / "new" / "folder")]


COMPARED = "Ensemble LyapunovDescent LyapunovFrankWolfe SinhaVaze Resolve"


def test_the_command_prints_a_table_and_fills_a_folder(short, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*short, "--verbose"]) == 0
    printed, folder = capsys.readouterr(), tmp_path / "new" / "folder"
    assert printed.err == ""
    verdict, _, rest = printed.out.partition("\n\n")
    assert verdict.startswith(("Begin with the default, caution 10", "Take caution "))
    assert rest.startswith("adversarial: 40 rounds, seed 0")
    assert printed.out.endswith(f"report: {folder / 'comparison.html'}\n")
    assert "\u2026" not in printed.out
    assert max(map(len, printed.out.splitlines()[:-1])) <= 80
    names = "compare.jsonl comparison.csv comparison.html comparison.json frontier-adversarial.png"
    assert sorted(each.name for each in folder.iterdir()) == names.split()
    found = tw.Comparison.load(folder)
    assert found.learners[:5] == tuple(COMPARED.split())
    assert {e.caution for e in found.entries if e.learner in found.learners[:4]} == {1.0, 10.0}
    headrooms = [p.value for p in found.frontier("adversarial", "Resolve")]
    assert headrooms == [0.0, 0.5, 1.0, 2.0, 4.0, 8.0]
    said = "Resolve and DriftPlusPenalty see whole functions, BanditPrimalDual sees two numbers"
    said += " per round; the others see gradients."
    assert said in printed.out.replace("\n", " ").replace("  ", " ")
    assert said in repr(found)
    for html in ((folder / "comparison.html").read_text(), found._repr_html_()):
        assert html.count("<small>sees two numbers per round</small>") == 1
        assert html.count("<small>sees whole functions</small>") == 2


def test_the_command_prints_json_alone_or_nothing(short, tmp_path, capsys):
    more = ["--json", "--learner", "PrimalDual", "--budgets", "1,2", "--seeds", "3"]
    assert main([*short, *more]) == 0
    printed = capsys.readouterr()
    data = json.loads(printed.out)
    assert printed.err == ""
    assert data == json.loads((tmp_path / "new" / "folder" / "comparison.json").read_text())
    runs = [(run["learner"], run["budget"], run["seed"]) for run in data["runs"]]
    assert runs == [("PrimalDual", 1.0, 3), ("PrimalDual", 2.0, 3)]
    assert main([*short, "--learner", "PrimalDual", "--quiet", "--force"]) == 0
    assert capsys.readouterr() == ("", "")
