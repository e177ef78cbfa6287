"""Run folders: whole, versioned, never overwritten unasked, killed at any moment and resumed bit
for bit.
"""

import contextlib
import errno
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covering import few
from refused import refused_command as refused
from test_cli import PROGRAM
from tidewolf import __version__, baselines, learners, problems
from tidewolf.cli import main
from tidewolf.core import checkpoint, errors
from tidewolf.evaluation.recording import Recording
from tidewolf.evaluation.run import finished, run
from tidewolf.experiments import RunFolder, load
from tidewolf.experiments.jobs import plan_run

SHORT = 'rounds = 60\nseeds = [0, 3]\n[stream]\nproblem = "adversarial"\nkind = "moving"\n'
TWO = 'learners = ["LyapunovDescent", "SinhaVaze"]\n'
LONG = TWO + 'rounds = 2500\n[stream]\nproblem = "routing"\n[outputs]\ncheckpoint_seconds = 0.01\n'
LABELS = [
    "LyapunovDescent-seed-0", "SinhaVaze-seed-0", "LyapunovDescent-seed-3", "SinhaVaze-seed-3",
]  # fmt: skip
LABELS = [f"0{number}-{label}" for number, label in enumerate(LABELS, start=1)]
FILES = "decisions.csv decisions.parquet experiment.toml limits.csv limits.parquet report.html"
FILES += " report.json report-seed-3.html report-seed-3.json rounds.parquet summary.json"
FILES += " checkpoints"
FILES = sorted([*FILES.split(), *(f"decisions-{label}.parquet" for label in LABELS[1:])])


@pytest.fixture
def here(here):
    (here / "short.toml").write_text(TWO + SHORT)
    return here


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A complete folder, to be copied."""
    here = tmp_path_factory.mktemp("played")
    (here / "short.toml").write_text(TWO + SHORT)
    assert main(["run", str(here / "short.toml"), "--out", str(here / "whole"), "--quiet"]) == 0
    return here / "whole"


@pytest.fixture
def folder(here, played):
    return shutil.copytree(played, here / "whole")


def results(folder):
    """Everything that was measured but the seconds."""
    summary = json.loads((folder / "summary.json").read_text())
    for each in summary["runs"]:
        del each["seconds"]
    tables = (*folder.glob("*.parquet"), *folder.glob("*.csv"))
    return summary, {path.name: path.read_bytes() for path in tables}


def test_a_folder_holds_everything_and_every_file_its_format_and_version(folder):
    from pyarrow import parquet

    assert sorted(path.name for path in folder.iterdir()) == FILES
    kept = [name for label in LABELS for name in (label, f"{label}.decisions")]
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == kept
    head = f"# tidewolf run 3, written by tidewolf {__version__}, sha256 "
    assert (folder / "experiment.toml").read_text().startswith(head)
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["format"], summary["rounds"], summary["seeds"]) == (3, 60, [0, 3])
    assert summary["versions"] == checkpoint.writer()
    table = parquet.read_table(folder / "rounds.parquet")
    assert json.loads(table.schema.metadata[b"tidewolf"])["format"] == 3
    columns = "run learner seed round loss violation calls distance churn solves"
    assert table.column_names == columns.split()
    for path in folder.glob("decisions*.parquet"):
        told = json.loads(parquet.read_schema(path).metadata[b"tidewolf"])
        assert (told["format"], told["versions"]) == (1, checkpoint.writer())
    assert table.num_rows == 4 * 60
    for name in ("report.html", "report-seed-3.html"):
        assert '<meta name="tidewolf-format"' in (folder / name).read_text()
    for path in (folder / "checkpoints").iterdir():
        log = path.suffix == ".decisions"
        head = b"tidewolf decisions 1 " if log else b"tidewolf state 3\n"
        assert path.read_bytes().startswith(head)


@pytest.mark.usefixtures("no_pages")
def test_the_experiment_of_a_folder_runs_again_elsewhere(folder, here):
    assert main(["run", "whole/experiment.toml", "--out", "again", "--quiet"]) == 0
    assert results(here / "again") == results(folder)


def test_nothing_is_overwritten_without_force(folder, here, capsys):
    (folder / "notes.txt").write_text("mine")
    before = results(folder)
    said = refused(capsys, "run", "short.toml", "--out", "whole", "--seed", "5")
    assert said.startswith("whole holds a run already")
    assert results(folder) == before
    assert main(["run", "short.toml", "--out", "whole", "--seed", "5", "--quiet", "--force"]) == 0
    assert (folder / "notes.txt").read_text() == "mine"
    assert all("seed-5" in path.name for path in folder.rglob("*-seed-*"))
    assert json.loads((folder / "summary.json").read_text())["seeds"] == [5]


@pytest.mark.usefixtures("no_pages")
def test_without_a_folder_the_next_free_one_is_taken(here, capsys):
    for expected in ("out", "out-2", "out-3"):
        assert main(["run", "adversarial", "--rounds", "5", "--learner", "SinhaVaze"]) == 0
        assert capsys.readouterr().out.endswith(f"report: {expected}/report.html\n")
    assert sorted(path.name for path in here.iterdir()) == ["out", "out-2", "out-3", "short.toml"]
    (here / "sub").mkdir()
    (here / "sub" / "e.toml").write_text(SHORT + '[outputs]\nfolder = "results"\n')
    assert main(["run", "sub/e.toml", "--quiet", "--learner", "SinhaVaze"]) == 0
    assert (here / "sub" / "results" / "summary.json").exists()


@pytest.mark.usefixtures("no_pages")
def test_the_command_line_overrules_the_file(here, capsys):
    arguments = ["--rounds", "20", "--seed", "9", "--json"]
    arguments += ["--learner", "SinhaVaze", "--learner", "PrimalDual"]
    more = "[[learners]]\nname = 'SinhaVaze'\ncaution = 3\n[[learners]]\nname = 'LyapunovDescent'\n"
    (here / "short.toml").write_text(SHORT + more)
    assert main(["run", "short.toml", *arguments]) == 0
    runs = json.loads(capsys.readouterr().out)["runs"]
    assert [
        (each["learner"], each["rounds"], each["seed"], each["experiment"]) for each in runs
    ] == [("SinhaVaze", 20, 9, "short"), ("PrimalDual", 20, 9, "short")]
    assert runs[0]["settings"] == {"horizon": 20, "caution": 3.0}


# stopped and killed


def stop_after(rounds):
    """Asks for a stop after so many updates."""
    left = [rounds]

    def stopping():
        left[0] -= 1
        return left[0] < 0

    return stopping


@pytest.mark.soak_examples(5)
@settings(max_examples=2)
@given(stops=st.lists(st.integers(0, 70), min_size=1, max_size=3))
def test_stopping_anywhere_and_going_on_changes_nothing(tmp_path_factory, stops):
    here = tmp_path_factory.mktemp("stops")
    kinds = (f"[[learners]]\nname = '{kind}'\n" for kind in ("LyapunovDescent", "BanditPrimalDual"))
    (here / "e.toml").write_text(SHORT + "".join(kinds))
    resolved = load(here / "e.toml").resolved()
    whole = RunFolder.create(here / "whole", resolved)
    RunFolder.create(here / "cut", resolved)
    found = whole.play()
    whole.write_rounds(found)
    whole.write_decisions(found)
    for stop in stops:
        with contextlib.suppress(errors.Interrupted):
            RunFolder.open(here / "cut").play(stopping=stop_after(stop))
    cut = RunFolder.open(here / "cut")
    found = cut.play()
    cut.write_rounds(found)
    cut.write_decisions(found)
    tables = [path.name for path in (here / "whole").glob("*.parquet")]
    assert len(tables) == 6
    for name in tables:
        assert (here / "cut" / name).read_bytes() == (here / "whole" / name).read_bytes()


EVERY = {**learners.every(), **baselines.every()}
REFUSED = {
    *(("completion", name) for name in ("CLASP", "Resolve")),
    *(("portfolio", name) for name in ("CLASP", "DriftPlusPenalty", "ProximalPenalty", "Resolve")),
}
PLACES = ("routing", "adversarial", "completion", "portfolio")


@pytest.mark.parametrize(
    ("place", "name"),
    [
        pytest.param(place, name, marks=() if (i + j) % 4 == 0 else pytest.mark.soak)
        for (i, place), (j, name) in itertools.product(enumerate(PLACES), enumerate(EVERY))
    ],
)
def test_every_learner_resumes_from_its_recording(place, name):
    problem = problems.named(place)(rounds=24, seed=2)
    if (place, name) in REFUSED:
        with pytest.raises(errors.NotSupported, match=name):
            run(EVERY[name](problem.K, horizon=24), problem.stream)
        return
    learner = EVERY[name](problem.K, horizon=24)
    whole, cut = run(learner, problem.stream), Recording(learner, problem.stream)
    while not cut.done:
        for t in cut.advance():
            if t % 7 == 0 or cut.done:
                break
        cut = Recording.load(cut.save(), learner, problem.stream, "The recording")
    again = finished(cut, whole.comparator)
    parts = "losses violations calls distances ends measures churn round_solves"
    for part in parts.split():
        np.testing.assert_array_equal(getattr(again, part), getattr(whole, part))
    assert learner.save(again.final_state) == learner.save(whole.final_state)
    assert again.certificate == whole.certificate


def marks(here):
    """When each checkpoint was last replaced."""
    found = (here / "cut" / "checkpoints").glob("0*-seed-?")
    return {path.name: path.stat().st_mtime_ns for path in found}


def begun(here, *arguments):
    """A child that plays, seen to have written a checkpoint."""
    before, environment = marks(here), {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PROGRAM, *arguments]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    deadline = time.monotonic() + 120
    while marks(here) == before:
        assert child.poll() is None, child.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.001)
    return child


@pytest.mark.usefixtures("no_pages")
@pytest.mark.parametrize("kills", few(1, [1, 8]))
def test_a_child_that_is_killed_is_resumed_bit_for_bit(here, capsys, kills):
    (here / "long.toml").write_text(LONG.replace("2500", "600" if kills == 1 else "12000"))
    for kill in range(kills):
        words = ["resume", "cut", "--quiet"] if kill else ["run", "long.toml", "--out", "cut"]
        with begun(here, *words) as child:
            time.sleep(np.random.default_rng(kill).uniform(0.0, 0.2) if kill else 0.0)
            child.kill()
        assert child.returncode == -signal.SIGKILL
    assert not (here / "cut" / "summary.json").exists()
    assert "`tidewolf resume cut`" in refused(capsys, "run", "long.toml", "--out", "cut")
    assert "`tidewolf resume cut`" in refused(capsys, "report", "cut")
    half = here / "cut" / "checkpoints" / ".01-LyapunovDescent-seed-0.4711.part"
    half.write_bytes(b"half a checkpo")
    assert main(["resume", "cut", "--quiet"]) == 0
    assert main(["run", "long.toml", "--out", "whole", "--quiet"]) == 0
    assert results(here / "cut") == results(here / "whole")
    assert not list((here / "cut").rglob(".*"))


@pytest.mark.parametrize("number", few(1, [signal.SIGINT, signal.SIGTERM]))
def test_an_interrupted_child_says_one_sentence_and_leaves_a_folder_to_resume(here, number):
    (here / "long.toml").write_text(LONG)
    with begun(here, "run", "long.toml", "--out", "cut") as child:
        child.send_signal(number)
        said = child.stderr.read()
    assert child.returncode == 130
    pattern = r"Interrupted after [\d,]+ of 2,500 rounds of \w+; `tidewolf resume cut` .*\.\n"
    assert re.fullmatch(pattern, said)
    folder = RunFolder.open(here / "cut")
    assert not folder.complete
    (done,) = [int(words.replace(",", "")) for words in re.findall(r"after ([\d,]+) of", said)]
    problem, (jobs,) = folder.experiment.problem(0), plan_run(folder.experiment)
    files = {job: here / "cut" / "checkpoints" / job.label for job in jobs}
    job, file = [(job, file) for job, file in files.items() if file.exists()][-1]
    learner = folder.experiment.learner(job.entrant, problem, 0)
    data = file.read_bytes()
    assert Recording.load(data, learner, problem.stream, "It", source=job.origin).t == done


# tampered with


def test_a_complete_folder_is_shown_again_and_its_page_written_again(folder, capsys):
    before, page = results(folder), (folder / "report.html").read_text()
    (folder / "report.html").unlink()
    assert main(["report", "whole"]) == 0
    pages = "report: whole/report.html\nreport: whole/report-seed-3.html\n"
    assert capsys.readouterr().out == pages
    written = re.compile(r"\d\d\d\d-\d\d-\d\d \d\d:\d\d UTC")
    assert written.sub("", (folder / "report.html").read_text()) == written.sub("", page)
    assert main(["resume", "whole", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 4
    assert results(folder) == before


def edited(path, edit):
    path.write_bytes(edit(path.read_bytes()))


CHECKPOINT = "checkpoints/02-SinhaVaze-seed-0"


@pytest.mark.parametrize(
    ("file", "edit"),
    [
        (CHECKPOINT, lambda data: data[:-5]),
        (CHECKPOINT, lambda data: data[:300] + b"!" + data[301:]),
        (CHECKPOINT, lambda data: b""),
        (CHECKPOINT, lambda data: data.replace(b"state 3\n", b"state 7\n", 1)),
        ("experiment.toml", lambda data: data[:-9]),
        ("experiment.toml", lambda data: data.replace(b"caution = 10.0", b"caution = 11.0")),
        ("experiment.toml", lambda data: data.partition(b"\n")[2]),
        ("experiment.toml", lambda data: data.replace(b"run 3,", b"run 7,", 1)),
        ("experiment.toml", lambda data: b"\xff" + data),
    ],
)
def test_files_that_were_tampered_with_are_refused(folder, capsys, file, edit):
    edited(folder / file, edit)
    for command in ("resume", *(["report"] if file == "experiment.toml" else [])):
        assert f"whole/{file}" in refused(capsys, command, "whole")


def test_a_record_that_makes_no_page_leaves_the_page_as_it_was(folder, capsys):
    page, file = (folder / "report.html").read_bytes(), folder / "report.json"
    for break_it in (lambda: edited(file, lambda data: data[:-5]), file.unlink):
        break_it()
        assert "whole/report.json" in refused(capsys, "report", "whole")
        assert (folder / "report.html").read_bytes() == page
    assert main(["resume", "whole", "--quiet"]) == 0
    assert main(["report", "whole", "--quiet"]) == 0


@pytest.mark.usefixtures("no_pages")
def test_a_checkpoint_of_other_settings_or_other_data_is_refused(folder, here, capsys):
    (here / "other.toml").write_text(TWO + SHORT.replace("moving", "opposing"))
    assert main(["run", "other.toml", "--out", "other", "--quiet"]) == 0
    name = "checkpoints/01-LyapunovDescent-seed-0"
    for other in (here / "other" / name, folder / CHECKPOINT):
        shutil.copy(other, folder / name)
        said = refused(capsys, "resume", "whole")
        assert said.startswith(f"whole/{name} ")
        assert "other" in said


def test_folders_that_are_none(here, capsys):
    assert "nowhere is no run folder" in refused(capsys, "resume", "nowhere")
    assert "is no run folder" in refused(capsys, "report", ".")
    run_to = ("run", "adversarial", "--rounds", "5", "--out")
    assert "is a file; a folder is needed" in refused(capsys, *run_to, "short.toml")
    assert "cannot be used" in refused(capsys, *run_to, "short.toml/sub")


@pytest.mark.usefixtures("no_pages")
def test_a_full_disk_is_a_sentence_and_what_was_written_stays_good(here, monkeypatch, capsys):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        RunFolder.create(here / "cut", load("short.toml").resolved())
        patched.setattr(os, "fsync", full)
        said = refused(capsys, "resume", "cut")
    log = "cut/checkpoints/01-LyapunovDescent-seed-0.decisions"
    assert said == f"{log} cannot be used: No space left on device."
    assert main(["resume", "cut", "--quiet"]) == 0


# --- one process at a time ------------------------------------------------------------------------

HOLDER = """
import fcntl, os, sys
fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
print("held", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def another_process_in(folder):
    """Another process at work there; it is let go, or killed, by leaving."""
    piped = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, folder], **piped)
    assert holder.stdout.readline() == "held\n"
    try:
        yield holder
    finally:
        holder.communicate()


def test_a_folder_that_another_process_plays_in_is_refused(folder, here, capsys):
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    (folder / "checkpoints" / ".half.part").write_bytes(b"of the other process")
    with another_process_in(folder) as other:
        play = ["run", "short.toml", "--out", "whole", "--force"]
        for words in (play, ["resume", "whole"], ["report", "whole"]):
            assert main([*words, "--quiet"]) == 2
            assert "Another process is at work there" in capsys.readouterr().err
        with pytest.raises(errors.InvalidInput, match="Another process is at work"):
            RunFolder.open(folder).play()
        assert (folder / "checkpoints" / ".half.part").exists()
        assert all(file.read_bytes() == content for file, content in before.items())
        other.kill()  # what is killed holds nothing
        other.wait()
        assert len(RunFolder.open(folder).play()) == 2


def test_two_threads_do_not_play_in_one_folder(folder):
    from concurrent.futures import ThreadPoolExecutor

    found = RunFolder.open(folder)
    with found.locked(), ThreadPoolExecutor(1) as pool:
        assert len(found.play()) == 2  # who holds it plays
        with pytest.raises(errors.InvalidInput, match="Another process is at work"):
            pool.submit(found.play).result()
    assert len(found.play()) == 2


def test_checkpoints_of_other_versions_say_so(folder, monkeypatch):
    here = checkpoint.writer()
    monkeypatch.setattr(checkpoint, "writer", lambda: {**here, "numba": "0.0.1"})
    match = r"whole was written with numba .* \(here 0\.0\.1\)"
    with pytest.warns(errors.OtherVersions, match=match) as said:
        RunFolder.open(folder).play()
    assert len({str(each.message) for each in said}) == 1
