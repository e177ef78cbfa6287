"""Sweeps: the same numbers whoever plays, nothing lost to a kill, nothing spoilt by a neighbour."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from itertools import pairwise

import pytest

from covering import few
from extras import Later
from tables import SIMPLEX, played_by
from test_cli import PROGRAM
from tidewolf.cli import main
from tidewolf.core import errors
from tidewolf.experiments import Choice, jobs, load
from tidewolf.experiments import compare as sweeps
from tidewolf.experiments.compare import PAGE, RESULTS, sweep
from tidewolf.experiments.jobs import crossed
from tidewolf.experiments.jobs import plan_sweep as plan
from traps import ROUTING, Trap

distributed, pq, threadpoolctl = map(Later, ("distributed", "pyarrow.parquet", "threadpoolctl"))

JOURNAL = "sweep.jsonl"
LEARNERS = ("LyapunovDescent", "SinhaVaze")


def cells_of(sources, names, **several):
    entrants = [Choice(name) for name in names]
    return [cell for source in sources for cell in crossed(source, entrants, **several)]


FEW = cells_of([ROUTING], LEARNERS, horizons=[10, 20], seeds=[0, 1])


@pytest.fixture(scope="module")
def cluster():
    """One worker: each takes seconds to start."""
    import dask

    # Dask's own choice is 1
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), 2)
    there = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    how = {"scheduler.allowed-failures": 1, "nanny.pre-spawn-environ": threads}
    with (
        dask.config.set({f"distributed.{key}": value for key, value in how.items()}),
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, **there) as found,
    ):
        yield found


@pytest.fixture
def two_workers(cluster):
    cluster.scale(2)
    with distributed.Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2)
    return cluster


@pytest.fixture(scope="module")
def cluster_here():
    """A cluster in this process: its worker takes no time to start."""
    there = {"host": "127.0.0.1", "dashboard_address": None, "silence_logs": 50}
    one = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "protocol": "tcp://"}
    with distributed.LocalCluster(**one, **there) as found:
        yield found


@pytest.fixture(params=few(1, ["here", "and on a cluster"]))
def every_engine(request):
    found = {"serial": jobs.serial(), "joblib": jobs.on_processes(2)}
    if request.param != "here":
        found["dask"] = jobs.on_cluster(request.getfixturevalue("cluster").scheduler_address)
    return found


def numbers(found):
    """Everything but the time it took."""
    return [{key: value for key, value in row.items() if key != "seconds"} for row in found.rows]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The rows of FEW, each played once."""
    return sweep(FEW, tmp_path_factory.mktemp("whole"), engine=jobs.serial())


@pytest.fixture
def known(whole):
    """An engine that has the rows of FEW, or is interrupted after so many cells."""

    def engine(left, after=None):
        for count, number in enumerate(left):
            if count == after:
                raise KeyboardInterrupt
            yield number, whole.rows[number]

    return engine


# the plan


def test_a_plan_is_the_product_of_what_each_learner_has():
    cells = cells_of(
        [ROUTING],
        ["LyapunovDescent", "Resolve", "Resolve"],  # each is played once
        horizons=[5, 9, 9],
        seeds=[0, 3],
        knobs={"caution": [1, 10, 10.0], "block": [2]},
    )
    assert len(set(cells)) == len(cells) == 2 * 2 * (2 + 1)
    given = [(("caution", caution), ("block", 2)) for caution in (1.0, 10.0)]
    descents = {Choice("LyapunovDescent", each) for each in given}
    assert {cell.entrant for cell in cells} == {Choice("Resolve"), *descents}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"learners": ["Nobody"]}, "Nobody"),
        ({"learners": []}, "learners"),
        ({"horizons": []}, "horizons"),
        ({"horizons": [0]}, "at least 1"),
        ({"seeds": [-1]}, "A seed"),
        ({"knobs": {"caution": []}}, "caution"),
        ({"knobs": {"block": [1.5]}}, "block of LyapunovDescent is a whole number, not 1.5"),
        ({"knobs": {"frob": [1]}}, "frob"),
        ({"learners": ["Resolve"], "knobs": {"caution": [1]}}, "caution"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(changed, said):
    given = {"learners": LEARNERS, **changed}
    with pytest.raises(errors.InvalidInput, match=said):
        cells_of([ROUTING], given.pop("learners"), **given)


# the same numbers


def test_a_worker_of_other_versions_is_not_believed():
    assert "not 1.0" in jobs._on_worker(FEW[0], {**jobs.versions(), "numpy": "1.0"})["failure"]


# failures


def test_engines_agree_and_what_one_cell_raises_harms_no_other(every_engine, tmp_path):
    traps = [Trap("refused", "refuse"), Trap("broken", "crash"), Trap("threads", "threads")]
    cells = cells_of([ROUTING, *traps], ["LyapunovDescent"], horizons=[10], seeds=[0, 1])
    results = []
    with threadpoolctl.threadpool_limits(2):
        before = {each["filepath"]: each["num_threads"] for each in threadpoolctl.threadpool_info()}
        for name, engine in every_engine.items():
            found = sweep(cells, tmp_path / name, engine=engine)
            results.append(numbers(found)[:6])
            failures = [row["failure"] for row in found.rows]
            raised = ["This stream is refused.", "ZeroDivisionError: a bug"]
            assert failures[:6] == ["", "", *(reason for reason in raised for _ in range(2))]
            for process, numba, *threads in map(json.loads, failures[6:]):
                assert set(threads) == {1}, name
                assert name != "joblib" or numba == "1"
                assert (process == os.getpid()) == (name == "serial")
            table = pq.read_table(tmp_path / name / RESULTS).to_pylist()
            assert [row["failure"] for row in table] == failures
            assert [row["violation"] is None for row in table] == list(map(bool, failures))
            assert [line.seeds for group in found.groups() for line in group.lines] == [2, 0, 0, 0]
            assert len({tuple(row) for row in found.rows}) == 1, "every row has the same keys"
        after = {each["filepath"]: each["num_threads"] for each in threadpoolctl.threadpool_info()}
        assert 2 in before.values()
        # a library that a cell was first to load keeps the cell's limit
        assert {file: after[file] for file in before} == before
    assert all(each == results[0] for each in results)


def test_what_failed_is_tried_again_and_nothing_else(tmp_path):
    moody = Trap("moody", "crash", str(tmp_path / "done"))
    cells = cells_of([ROUTING, moody], ["SinhaVaze"], horizons=[10])
    assert len(sweep(cells, tmp_path / "out", engine=jobs.serial()).failures) == 1

    def engine(left):
        assert list(left) == [1]
        yield from jobs.serial()(left)

    assert not sweep(cells, tmp_path / "out", engine=engine).failures
    assert pq.read_table(tmp_path / "out" / RESULTS)["failure"].to_pylist() == ["", ""]


@pytest.mark.parametrize("mortal", few(1, [False, True]))
def test_a_process_that_dies_costs_nothing_and_a_cell_that_kills_is_a_failure(mortal, tmp_path):
    once = [Trap("mortal", "die", str(tmp_path / "dead"))] if mortal else []
    # not the killer beside the mortal one: who dies takes the processes of all with it
    sources = [*once, ROUTING, Trap("killer", "die")]
    cells = cells_of(sources, ["SinhaVaze"], horizons=[10])
    found = sweep(cells, tmp_path / "out", engine=jobs.on_processes(2))
    kills = [source.name == "killer" for source in sources]
    assert [("died twice" in row["failure"]) for row in found.rows] == kills
    assert [row["failure"] != "" for row in found.rows] == kills


@pytest.mark.soak
def test_a_worker_killed_half_way_does_not_lose_the_sweep(two_workers, tmp_path):
    cluster = two_workers
    cells = cells_of([Trap("slow", "wait")], ["SinhaVaze"], horizons=[10], seeds=range(8))
    killed = []

    def kill(done, *_):
        if done == 2 and not killed:
            killed.append(cluster.workers[0].pid)
            os.kill(killed[0], signal.SIGKILL)

    found = sweep(cells, tmp_path, engine=jobs.on_cluster(cluster.scheduler_address), progress=kill)
    assert killed
    assert not found.failures
    assert numbers(found) == numbers(sweep(cells, tmp_path / "alone", engine=jobs.serial()))


@pytest.mark.soak
def test_a_cell_that_kills_every_worker_is_a_failure(two_workers, tmp_path):
    cells = cells_of([Trap("killer", "die"), ROUTING], ["SinhaVaze"], horizons=[10])
    found = sweep(cells, tmp_path, engine=jobs.on_cluster(two_workers.scheduler_address))
    assert "died" in found.rows[0]["failure"]
    assert found.rows[1]["failure"] == ""


def test_a_cluster_that_is_not_there_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "_CONNECT_SECONDS", 0.5)
    for address in ("tcp://127.0.0.1:9", "frob://127.0.0.1:9"):
        with pytest.raises(errors.ClusterLost, match=address):
            sweep(FEW, tmp_path, engine=jobs.on_cluster(address))


# what is done stays done


def test_a_sweep_resumes_where_it_stopped(whole, known, tmp_path):
    with pytest.raises(errors.Interrupted):
        sweep(FEW, tmp_path, engine=partial(known, after=3))
    assert not (tmp_path / RESULTS).exists()

    def rest(left):
        assert list(left) == list(range(3, len(FEW)))
        yield from jobs.serial()(left)

    assert numbers(sweep(FEW, tmp_path, engine=rest)) == numbers(whole)
    none = jobs.on_cluster("tcp://127.0.0.1:9")
    assert numbers(sweep(FEW, tmp_path, engine=none)) == numbers(whole)


def test_wherever_a_write_was_cut_the_whole_lines_count(whole, known, tmp_path):
    assert sweep(FEW, tmp_path, engine=known) == whole
    journal = tmp_path / JOURNAL
    data = journal.read_bytes()
    ends = [i + 1 for i, byte in enumerate(data) if byte == ord("\n")]
    for kept, (start, stop) in enumerate(pairwise(ends)):
        for cut in {start, start + 1, (start + stop) // 2, stop - 1}:
            journal.write_bytes(data[:cut])

            def rest(left, kept=kept):
                assert list(left) == list(range(kept, len(FEW)))
                yield from known(left)

            assert sweep(FEW, tmp_path, engine=rest) == whole
            assert journal.read_bytes() == data
    journal.write_bytes(data + b"x" * len(data))
    assert sweep(FEW, tmp_path, engine=known) == whole
    assert journal.read_bytes() == data


# the folder


def test_nothing_is_overwritten_unless_forced(whole, known, tmp_path):
    sweep(FEW, tmp_path, engine=known)
    with pytest.raises(errors.OtherSettings, match="another sweep"):
        sweep(FEW[:2], tmp_path, engine=known)
    assert len(sweep(FEW[:2], tmp_path, engine=known, force=True).rows) == 2
    assert pq.read_table(tmp_path / RESULTS).num_rows == 2
    (tmp_path / JOURNAL).unlink()
    with pytest.raises(errors.InvalidInput, match=RESULTS):
        sweep(FEW, tmp_path, engine=known)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda data: b"", errors.BrokenFile),
        (lambda data: b"no journal\n", errors.BrokenFile),
        (lambda data: data.replace(b'"format": 3', b'"format": 4', 1), errors.NewerFormat),
        (lambda data: data.replace(b'"format": 3', b'"format": 2', 1), errors.OlderFormat),
        (lambda data: data.replace(b'"cell": 1,', b'"cell": 2,'), errors.BrokenFile),
        (lambda data: data.replace(b'"cell": 1,', b'"cell": 99,'), errors.BrokenFile),
        (lambda data: data.replace(b'{"cell": 1,', b'"cell": 1,'), errors.BrokenFile),
    ],
)
def test_a_journal_that_was_changed_is_refused(change, error, whole, known, tmp_path):
    sweep(FEW, tmp_path, engine=known)
    path = tmp_path / JOURNAL
    path.write_bytes(broken := change(path.read_bytes()))
    with pytest.raises(error):
        sweep(FEW, tmp_path, engine=known)
    assert path.read_bytes() == broken
    assert sweep(FEW, tmp_path, engine=known, force=True) == whole


def test_a_sweep_is_not_continued_under_other_versions(whole, known, tmp_path, monkeypatch):
    with pytest.raises(errors.Interrupted):
        sweep(FEW, tmp_path, engine=partial(known, after=2))
    others = {**jobs.versions(), "numpy": "99"}
    with monkeypatch.context() as patch:
        patch.setattr(jobs, "versions", lambda: others)
        with pytest.raises(errors.OtherSettings, match="begun with numpy"):
            sweep(FEW, tmp_path, engine=known)
    assert sweep(FEW, tmp_path, engine=known) == whole
    monkeypatch.setattr(jobs, "versions", lambda: others)
    assert sweep(FEW, tmp_path, engine=known) == whole


# the command


@pytest.fixture
def command(tmp_path):
    words = ["sweep", "routing", "--horizons", "10,20", "--seeds", "0,1", "--jobs", "1"]
    words += [word for name in LEARNERS for word in ("--learner", name)]
    return [*words, "--knob", "caution=1,10", "--out", str(tmp_path / "out")]


def test_the_command_prints_a_table_and_writes_one(command, tmp_path, capsys):
    assert main(command) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "Sweep of Routing" in (tmp_path / "out" / PAGE).read_text()
    assert printed.out.startswith("routing: 10 rounds")
    page = tmp_path / "out" / PAGE
    assert page.read_text().count("<figure") == 2, "one for each horizon: caution moves"
    assert printed.out.endswith(f"results: {tmp_path / 'out' / RESULTS}\nreport: {page}\n")
    table = pq.read_table(tmp_path / "out" / RESULTS).to_pandas()
    assert len(table) == 2 * 2 * 2 * 2
    assert sorted(set(table.knob_caution)) == [1.0, 10.0]
    assert (table.regret_lower <= table.regret_upper).all()
    assert (table.calls_per_round == table.oracle_calls / table.rounds).all()
    lines = (tmp_path / "out" / JOURNAL).read_text().splitlines()[1:]
    for group in sweeps.Sweep(tuple(json.loads(line)["row"] for line in lines)).groups():
        assert group.knobs == ("caution",)
        for line in group.lines:
            caution = line.settings["caution"]
            same = table.query("learner == @line.learner and rounds == @line.rounds")
            same = same[same.knob_caution == caution]
            assert line.seeds == 2
            assert line.values["loss_mean"] == pytest.approx(same.loss_mean.mean())
            assert line.values["violation_worst"] == same.violation_worst.max()
            assert all(column.cell(line) in page.read_text() for column in sweeps.LINE_COLUMNS[:2])
    assert main([*command, "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    assert main([*command, "--json"]) == 0
    runs = json.loads(capsys.readouterr().out)["runs"]
    assert len({(run["learner"], run["rounds"], run["seed"]) for run in runs}) == 8


def test_a_full_disk_is_said_and_costs_nothing_that_is_done(command, tmp_path, capsys, monkeypatch):
    before, calls, command = os.fsync, [], [*command, "--horizons", "10", "--seeds", "0"]

    def full(file):
        calls.append(file)
        if len(calls) == 4:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        before(file)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        assert main(command) == 2
    said = f"{tmp_path / 'out' / JOURNAL} cannot be used: No space left on device.\n"
    assert capsys.readouterr().err == said
    assert main([*command, "--quiet"]) == 0
    assert pq.read_table(tmp_path / "out" / RESULTS).num_rows == 4


# experiment files

FILE = "rounds = 30\nseeds = [3, 4]\n" + SIMPLEX
FILE += played_by('"LyapunovDescent"\nblock = 2', '"SinhaVaze"')
FILE += "[sweep]\nhorizons = [10, 20]\ncaution = [1, 10]\nblock = [1, 4]\n"


@pytest.fixture
def file(tmp_path):
    (tmp_path / "costs.csv").write_text("a,b\n" + "".join(f"{i % 3},{i % 2}\n" for i in range(30)))
    (tmp_path / "capacities.csv").write_text("a,b\n" + "0.7,0.8\n" * 30)
    (tmp_path / "mine.toml").write_text(FILE)
    return tmp_path / "mine.toml"


def test_a_file_says_what_is_swept(file):
    cells = plan(load(file))
    assert {cell.rounds for cell in cells} == {10, 20}
    assert {cell.seed for cell in cells} == {3, 4}
    block = {"LyapunovDescent": (("block", 2),), "SinhaVaze": ()}  # which a learner sets itself
    given = ((name, caution) for name in LEARNERS for caution in (1.0, 10.0))
    entrants = {Choice(name, (*block[name], ("caution", caution))) for name, caution in given}
    assert {cell.entrant for cell in cells} == entrants
    assert plan(load(file)) == cells
    again = file.with_name("again.toml")
    again.write_text(load(file).toml())
    assert load(again).swept == load(file).swept
    assert {cell.rounds for cell in plan(load(file), horizons=[5])} == {5}
    assert {cell.seed for cell in plan(load(file), seeds=[9])} == {9}
    cautious = plan(load(file), knobs={"caution": [2.0]})
    assert {cell.entrant.given["caution"] for cell in cautious} == {2.0}
    file.write_text(f"caution = 5\n{FILE}")
    assert plan(load(file)) == cells
    file.write_text(f"caution = 5\n{FILE.replace('caution = [1, 10]', '')}")
    assert {cell.entrant.given["caution"] for cell in plan(load(file))} == {5.0}


def test_a_file_is_swept_from_the_shell_by_every_engine(file, cluster_here, tmp_path, capsys):
    found = []
    for where in (["--jobs", "1"], ["--dask", cluster_here.scheduler_address]):
        words = ["--horizons", "10", "--out", str(tmp_path / f"out-{len(found)}"), *where]
        assert main(["sweep", str(file), "--json", *words]) == 0
        found.append([{**run, "seconds": 0} for run in json.loads(capsys.readouterr().out)["runs"]])
    assert found[0] == found[1]
    assert {run["experiment"] for run in found[0]} == {"mine"}
    assert not any(run["failure"] for run in found[0])


def test_an_experiment_is_known_by_what_is_in_its_files(file, tmp_path):
    def identity():
        return plan(load(file))[0].identity

    before, costs = identity(), tmp_path / "costs.csv"
    assert identity() == before
    costs.rename(tmp_path / "other.csv")
    file.write_text(FILE.replace("costs.csv", "other.csv"))
    assert identity() == before
    (tmp_path / "other.csv").write_text((tmp_path / "other.csv").read_text().replace("2", "5"))
    assert identity() != before


ENDS = [(signal.SIGKILL, "1"), pytest.param(signal.SIGINT, "2", marks=pytest.mark.soak)]


@pytest.mark.parametrize(("how", "jobs"), ENDS)
def test_a_killed_command_is_continued_by_the_same_command(how, jobs, tmp_path, capsys):
    words = ["sweep", "routing", "--horizons", "120", "--seeds", "0,1,2,3,4,5,6,7"]
    words += ["--learner", "LyapunovDescent", "--out", str(tmp_path)]
    command, journal = [sys.executable, "-c", PROGRAM, *words, "--jobs", jobs], tmp_path / JOURNAL
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes, start_new_session=True) as process:
        until = time.monotonic() + 60
        while not journal.exists() or journal.read_bytes().count(b"\n") < 3:
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.005)
        os.killpg(process.pid, how)  # as Ctrl-C in a terminal does: every process of the sweep
        said = process.communicate()
    if how == signal.SIGINT and process.returncode != 0:  # it may just have come to its end
        assert process.returncode == 130
        assert said[0] == ""
        assert said[1].startswith("Interrupted: ")
        assert len(said[1].splitlines()) == 1
    before = journal.read_bytes()
    before = before[: before.rfind(b"\n") + 1]
    assert main([*words, "--jobs", "1", "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert journal.read_bytes().startswith(before)
    assert journal.read_bytes().count(b"\n") == 1 + 8
    assert [run["seed"] for run in json.loads(printed.out)["runs"]] == list(range(8))
