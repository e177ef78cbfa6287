"""How the suite runs: the same examples everywhere, no skip unnoticed, and what every file costs.

A skip is a hole. With CI=true one whose reason is not on the short list ALLOWED fails the session
and is named; all of them go, one line each, into the file that TIDEWOLF_SKIPPED names, where it is
set. Hypothesis draws the same examples on every machine and run; a law with the mark
`soak_examples(n)` is tried again in `make soak`, on n of them.

The quick run (`-m "not soak"`) does not collect soak tests at all: neither functions and parameters
with the mark `soak`, nor the folders `soak` and `docs` (`make docs` runs the latter).

Cost is the processor time of a process and of the children it waited for: on a busy machine it is
what it is on a quiet one. A test's is that of its own call; a file's is that of all its tests with
their setups and teardowns. The whole suite has a budget.
"""

import os
import re
import shutil
import tempfile
from collections import Counter
from functools import partial
from itertools import compress
from pathlib import Path

import numpy as np
import pytest
from _pytest.mark import ParameterSet
from hypothesis import settings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # two workers share two cores; before NumPy
if os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > 1 << 30:
    tempfile.tempdir = os.environ["TMPDIR"] = "/dev/shm"  # nobody waits for a disk

import tidewolf as tw
from extras import pytest_collection_modifyitems, pytest_pycollect_makemodule  # noqa: F401  (hooks)
from postgres import postgres_server, postgres_url  # noqa: F401  (fixtures)
from servers import served, servers  # noqa: F401  (fixtures)
from tidewolf.evaluation import recording

ALLOWED = (
    r"(torch|jax) is not installed",
    r"There is no Chromium here",
    r"There is no PostgreSQL here",
    r"There is no HAProxy here",
    r"There is no C compiler here",
    r"^only root can become another user$",
    r"recorded streams? .*(is|are) not in .*; set TIDEWOLF_DATA",
)
"""Reasons for which a test may be skipped: what .ci/run installs where it can, and records that are
not ours to publish.
"""
BARE = (r'is not installed; pip install "tidewolf\[\w+\]" runs ',)
"""With TIDEWOLF_BARE=1 (`make bare`) tests that need an extra may be skipped too; tests/extras.py
lists them.
"""
BUDGET, LONG = 600, 8
"""Core-seconds for the whole suite, and for one test."""

recording.SHORT = 0  # machine code is tested; test_rounds.py has others
settings.register_profile("ci", derandomize=True, deadline=None, max_examples=25)
settings.load_profile("ci")
HERE = Path(__file__).parent
_BEGAN, _CALLED = pytest.StashKey[float](), pytest.StashKey[float]()


def quick(config):
    """Whether this run leaves soak tests out."""
    return config.option.markexpr == "not soak"


def soaks(marked):
    """Whether a value of a parameter, or the marks of a function, have the mark `soak`."""
    return any(mark.name == "soak" for mark in getattr(marked, "marks", marked))


def pytest_ignore_collect(collection_path, config):
    """Folders given on the command line are not asked about."""
    elsewhere = collection_path.parent == HERE and collection_path.name in ("docs", "soak")
    return True if elsewhere and quick(config) else None


def pytest_pycollect_makeitem(collector, name, obj):
    if name.startswith("test") and quick(collector.config):
        return [] if soaks(getattr(obj, "pytestmark", ())) else None
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc):
    if quick(metafunc.config):
        metafunc.parametrize = partial(parametrize_quick, metafunc.parametrize)
    if longer := metafunc.definition.get_closest_marker("soak_examples"):
        metafunc.fixturenames.append("soak_examples")
        (many,) = longer.args
        cases = [pytest.param(None, id="few"), pytest.param(many, marks=pytest.mark.soak)]
        metafunc.parametrize("soak_examples", cases)


def parametrize_quick(parametrize, argnames, argvalues, *, ids=None, **options):
    """Parametrize by the values without the mark `soak`; by all of them if each has it, so that
    `-m` leaves them out.
    """
    values = list(argvalues)
    keep = [not (isinstance(value, ParameterSet) and soaks(value)) for value in values]
    if any(keep):
        values = list(compress(values, keep))
        ids = ids if ids is None or callable(ids) else list(compress(ids, keep))
    parametrize(argnames, values, ids=ids, **options)


def spent():
    """Processor seconds of this process and the children it has waited for."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    item.stash[_BEGAN] = spent()
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item):
    item.stash[_CALLED] = spent()
    many = getattr(item, "callspec", None) and item.callspec.params.get("soak_examples")
    if many is None:
        return (yield)
    name, law = "_hypothesis_internal_use_settings", item.obj
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(law, name, settings(getattr(law, name), max_examples=many))
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if began := {"call": _CALLED, "teardown": _BEGAN}.get(call.when):
        report.user_properties.append(("core-seconds", spent() - item.stash[began]))
    return report


def skips(reporter):
    """(where, why) of everything that was skipped, modules as a whole too."""
    found = []
    for report in reporter.stats.get("skipped", ()):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        found.append((report.nodeid, reason.removeprefix("Skipped: ")))
    return found


def unlisted(reporter):
    """The skips that fail a session with CI=true."""
    allowed = ALLOWED + (BARE if os.environ.get("TIDEWOLF_BARE") == "1" else ())
    if os.environ.get("CI") != "true":
        return []
    return [each for each in skips(reporter) if not any(re.search(x, each[1]) for x in allowed)]


def pytest_sessionfinish(session, exitstatus):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if hasattr(session.config, "workerinput") or reporter is None:
        return
    if exitstatus == pytest.ExitCode.OK and unlisted(reporter):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if path := os.environ.get("TIDEWOLF_SKIPPED"):
        why = Counter((where.partition("::")[0], why) for where, why in skips(reporter))
        lines = [f"{where} ({count}): {reason}\n" for (where, reason), count in sorted(why.items())]
        Path(path).write_text("".join(lines))


def pytest_terminal_summary(terminalreporter):
    write, own, files = terminalreporter.write_line, Counter[str](), Counter[str]()
    for report in (report for reports in terminalreporter.stats.values() for report in reports):
        cost = dict(getattr(report, "user_properties", ())).get("core-seconds")
        if cost is not None and report.when == "call":
            own[report.nodeid] += cost
        elif cost is not None:
            files[report.nodeid.partition("::")[0]] += cost
    if files:
        terminalreporter.section("core-seconds")
        for file, cost in files.most_common():
            write(f"{cost:8.1f}  {file}")
        over = f", exceeded by {files.total() - BUDGET:.1f}" if files.total() > BUDGET else ""
        write(f"{files.total():8.1f}  in all; the budget is {BUDGET:,}{over}")
        for test, cost in own.most_common():
            if cost > LONG:
                write(f"{cost:8.1f}  {test}: over {LONG}, mark it soak or make it quicker")
    if refused := unlisted(terminalreporter):
        terminalreporter.section("skipped, which fails with CI=true", red=True, bold=True)
        for where, why in refused:
            write(f"{where}: {why}")
        write("Install what is missing, or list the reason in tests/conftest.py.")


@pytest.fixture(scope="session", autouse=True)
def _kernels(request):
    """Of two workers with many tests, each compiles half of the large kernels at first; else both
    would need the same kernel at once, and one would wait until the other has compiled it.
    """
    worker = getattr(request.config, "workerinput", {"workercount": 1})
    if worker["workercount"] != 2 or len(request.session.items) < 1000:
        return
    learners = [
        tw.LyapunovDescent(tw.problems.routing(rounds=1).K),
        tw.Ensemble(tw.sets.Simplex(4), experts=[tw.experts.Resolve()]),
        tw.LyapunovDescent(tw.sets.SimplexProduct([3, 2, 4])),
        tw.LyapunovDescent(tw.sets.Product(tw.sets.Simplex(3), tw.sets.Simplex(2))),
    ]
    for learner in learners[int(worker["workerid"] == "gw1") :: 2]:
        ones = np.ones((2, *learner.K.shape))
        tw.run(learner, tw.Stream(tw.functions.Linear(ones), tw.functions.Capacity(ones)))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def no_pages():
    """Runs write no report pages, which take most of the time of a short one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidewolf.report.write", lambda *_, **__: None)
        yield patch
