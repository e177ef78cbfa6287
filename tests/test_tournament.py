"""Comparisons of one's own files: the same numbers whoever plays, nothing lost to a kill, and what
each step of caution costs and buys.
"""

import json
from dataclasses import replace

import numpy as np
import pytest

import tidewolf as tw
from tables import played_by
from tidewolf.core.errors import Interrupted, InvalidInput, OtherSettings
from tidewolf.evaluation.comparison import Entry, Point, Venue, undominated
from tidewolf.experiments import Choice, Experiment, jobs, load
from tidewolf.experiments.compare import CAUTIONS, HEADROOMS, compare_experiments
from tidewolf.experiments.compare import plan_comparison as plan
from tidewolf.experiments.jobs import Player, advance, begin
from tidewolf.hindsight.best import best_in_hindsight

ROUNDS = 48
ENDS = 'kind = "FlowPolytope"\ngraph = "links.csv"\nsource = "A"\ntarget = "D"\n'
NETWORK = f'[set]\n{ENDS}[stream]\ncosts = "costs.csv"\ncapacities = "capacities.csv"\n'
FEW = {"cautions": [3.0, 10.0], "headrooms": [0.0, 2.0]}


@pytest.fixture
def file(tmp_path):
    """A network of one's own, so tight that no fixed point keeps every limit."""
    links = ["A,B", "B,D", "A,C", "C,D", "B,C", "A,D"]
    (tmp_path / "links.csv").write_text("\n".join(["tail,head", *links]) + "\n")
    rng = np.random.default_rng(0)
    wave = 1.0 + 0.3 * np.sin(np.arange(ROUNDS)[:, None] / 4.0 + np.arange(6))
    columns = ",".join(link.replace(",", " > ") for link in links)
    costs, capacities = [1.0, 1.0, 1.2, 1.2, 0.1, 3.0], [0.5, 0.5, 0.5, 0.5, 0.4, 0.3]
    for name, base in (("costs", costs), ("capacities", capacities)):
        numbers = base * (wave + 0.1 * rng.standard_normal(wave.shape))
        rows = [f"{t},{','.join(f'{x:.4f}' for x in row)}" for t, row in enumerate(numbers)]
        (tmp_path / f"{name}.csv").write_text("\n".join([f"time,{columns}", *rows]) + "\n")
    (tmp_path / "network.toml").write_text(NETWORK)
    return tmp_path / "network.toml"


def timeless(found):
    """Everything but the time it took."""
    return [entry._replace(seconds=0.0) for entry in found.entries], found.venues


# who plays


def test_a_file_that_names_nobody_is_played_by_the_usual_ones(file):
    matches, played = plan([load(file)]), {}
    for match in matches:
        played.setdefault(match.entry.learner, []).append(match)
    assert list(played) == ["Ensemble", "SinhaVaze", "Resolve"]
    assert [match.entry.caution for match in played["Ensemble"]] == list(CAUTIONS)
    assert [match.entry.headroom for match in played["Resolve"]] == list(HEADROOMS)
    assert played["Ensemble"][0].job.entrant.given["experts"] == ("last",), "as run would have it"
    usual = {name: [m.entry for m in found if m.entry.default] for name, found in played.items()}
    marked = [(e.caution, e.headroom) for (e,) in usual.values()]
    assert marked == [(10.0, None), (10.0, None), (None, 0.0)]


def test_the_learners_of_a_file_are_its_own_and_so_is_what_is_marked(file):
    named = ['"Ensemble"\ncaution = 7', '"Ensemble"\nexperts = ["last"]', '"PrimalDual"']
    file.write_text(NETWORK + played_by(*named))
    matches = plan([load(file)])
    labels = list(dict.fromkeys(match.entry.learner for match in matches))
    assert labels == ["Ensemble", "Ensemble (experts last)", "PrimalDual"]
    first = [match.entry for match in matches if match.entry.learner == labels[0]]
    assert [e.caution for e in first] == sorted([*CAUTIONS, 7.0])
    assert [e.caution for e in first if e.default] == [7.0]
    (point,) = [match for match in matches if match.entry.learner == "PrimalDual"]
    assert (point.entry.caution, point.entry.default) == (None, False)
    assert plan([load(file)], cautions=[2.0])[0].job.entrant.given["caution"] == 2.0
    file.write_text(f"caution = [4, 5]\n{NETWORK}")
    swept = [m.entry for m in plan([load(file)]) if m.entry.learner == "Ensemble"]
    assert [e.caution for e in swept] == sorted([*CAUTIONS, 4.0, 5.0])
    assert [e.caution for e in swept if e.default] == [4.0]


def test_two_experiments_of_one_name_are_refused(file):
    with pytest.raises(InvalidInput, match="Two experiments are called 'network'"):
        plan([load(file), load(file)])


# what is done stays done


def test_a_comparison_goes_on_where_it_stopped(file, tmp_path):
    matches = plan([load(file)], **FEW)
    whole = compare_experiments(matches, tmp_path / "whole", engine=jobs.serial())

    def stopping(left):
        for count, done in enumerate(jobs.serial()(left)):
            if count == 2:
                raise KeyboardInterrupt
            yield done

    with pytest.raises(Interrupted):
        compare_experiments(matches, tmp_path / "cut", engine=stopping)
    assert not (tmp_path / "cut" / "comparison.json").exists()
    left = []

    def going_on(tasks):
        left.extend(tasks)
        yield from jobs.serial()(tasks)

    found = compare_experiments(matches, tmp_path / "cut", engine=going_on)
    assert left == list(range(2, len(matches)))
    assert timeless(found) == timeless(whole)
    with pytest.raises(OtherSettings, match="another comparison"):
        compare_experiments(matches[:2], tmp_path / "cut", engine=jobs.serial())


def test_a_cell_that_is_cut_anywhere_goes_on_bit_for_bit(file, tmp_path, monkeypatch):
    monkeypatch.setattr("tidewolf.evaluation.recording.FIRST_PACE", 4)
    (cell,) = [m.job for m in plan([load(file)], **FEW) if m.entry.caution == 3.0][:1]
    whole = Player().row(cell)
    for stop in (0, 1, 2):
        kept, calls = tmp_path / f"cut-{stop}", iter(range(stop))
        ready = Player().prepared(cell)
        learner = cell.source.learner(cell.entrant, ready.problem, cell.seed)
        recording = begin(learner, ready.problem, kept, cell.origin)
        assert not advance(recording, kept, stopping=lambda calls=calls: next(calls, None) is None)
        assert 0 < recording.t < ROUNDS
        again = Player().row(cell, file=kept)
        assert {**again, "seconds": 0} == {**whole, "seconds": 0}


def test_a_recording_that_cannot_be_read_fails_the_job_once(file, tmp_path):
    """What cannot be read is no recording: the cell fails, and is played anew the next time."""
    matches = plan([load(file)], cautions=[3.0], headrooms=[0.0])[:1]

    def spoilt(tasks):
        (task,) = tasks.values()
        task[1].write_bytes(b"no recording")
        yield from jobs.serial()(tasks)

    found = compare_experiments(matches, tmp_path / "out", engine=spoilt)
    assert str(tmp_path / "out" / "checkpoints" / "0") in found.entries[0].failure
    assert not compare_experiments(matches, tmp_path / "out", engine=jobs.serial()).failures


def test_the_comparator_of_a_stream_is_computed_once(file, monkeypatch):
    computed = []

    def counting(*given):
        computed.append(given)
        return best_in_hindsight(*given)

    monkeypatch.setattr("tidewolf.experiments.jobs.best_in_hindsight", counting)
    bandit = (Choice("BanditPrimalDual"), Choice("SinhaVaze"))
    matches = plan([replace(load(file), learners=bandit)], cautions=[1.0, 10.0], seeds=[4, 5])
    assert {match.job.seed for match in matches} == {4, 5}
    player = Player()
    rows = [player.row(match.job) for match in matches]
    assert len(computed) == 1
    assert len({json.dumps(row["comparator"]) for row in rows}) == 1
    other = plan([Experiment.builtin("adversarial")], cautions=[1.0])[0].job._replace(rounds=20)
    assert player.row(other)["comparator"] != rows[0]["comparator"]
    assert len(computed) == 2


# what it says


def point(value, loss, violation, *, knob="caution", default=False, regret=None):
    return Point(
        None, None, regret, violation, 0.0, 0.0, 0.0,
        loss=loss, knob=knob, value=value, default=default,
    )  # fmt: skip


def entries(*points, learner="Ensemble"):
    return tuple(
        Entry(
            "s", learner, 0, p.value if p.knob == "caution" else None, None, p.loss, None,
            p.violation, 0.0, 0.0, 0.0, None,
            headroom=p.value if p.knob == "headroom" else None, default=p.default,
        )
        for p in points
    )  # fmt: skip


VENUE = Venue("s", 0, 5, np.inf, np.inf, False, "None.")


def found_of(*groups):
    return tw.Comparison((VENUE,), sum(groups, ()))


def test_re_solving_is_met_at_equal_violation():
    ours = entries(point(1.0, 2.0, 0.4), point(10.0, 2.2, 0.1, default=True))
    measured = ((0.0, 2.5, 0.11), (1.0, 2.6, 0.12), (2.0, 2.7, 0.001))
    theirs = entries(*(point(*each, knob="headroom") for each in measured), learner="Resolve")
    found = found_of(ours, theirs)
    assert found.chooser("s") == "Ensemble"
    assert len(found.steps("s")) == 1
    assert len(found.steps("s", "Resolve")) == 2
    said, _ = found.against_resolving("s")  # headroom 1 is worse, and 2 more careful than we are
    for part in ("caution 10", "headroom 0", "0.1 against 0.11", "12 %"):
        assert part in said
    said, _ = found_of(ours, theirs[2:]).against_resolving("s")
    assert "Resolve at" not in said
    assert found_of(ours).against_resolving("s") == found_of(ours[:1]).steps("s") == []


USUAL = point(10.0, 2.0, 0.1, default=True)


@pytest.mark.parametrize(
    ("points", "parts"),
    [
        (
            [point(0.1, 1.0, 0.9), point(3.0, 1.9, 0.14), USUAL, point(30.0, 2.2, 0.05)],
            [("caution 10", " 2 "), ("caution 30", "10 %", "50 %"), ("caution 3", "5 %", "40 %")],
        ),
        ([point(3.0, 1.8, 0.05), USUAL], [("caution 3", "10 %", "50 %")]),
        ([point(3.0, 1.8, 0.5), point(10.0, 2.0, 0.1)], []),  # no point is the default
    ],
)
def test_the_choice_begins_with_the_default_and_names_what_lies_nearest(points, parts):
    found = found_of(entries(*points)).choice("s")
    assert len(found) == len(parts)
    for sentence, expected in zip(found, parts, strict=True):
        assert all(part in sentence for part in expected), sentence


def test_the_undominated_are_beaten_by_nobody():
    points = [point(0.0, 1.0, 1.0), point(1.0, 2.0, 2.0), point(2.0, 0.5, 3.0)]
    assert undominated(points) == [points[0], points[2]]
