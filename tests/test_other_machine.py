"""Sessions and run folders that move to a machine with other arithmetic continue there.

The other machine is a process whose BLAS and NumPy use the code of an old processor. The next
decision agrees to 1e-9 of the diameter. Later ones may part at a tie between vertices, so totals
over many rounds are compared: 0.1 % of the loss, 5 % of the violation.
Costs are such that losses do not cancel: on two streams of matrices whose total loss is near 0 the
totals differed by 1.2 % and 1.6 % of it.
"""

import json
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from tools.portable import environment

import tidewolf as tw
from interpreter import python
from tables import SIMPLEX, played_by
from test_problems import needs_records
from tidewolf.cli import main
from tidewolf.core import checkpoint
from tidewolf.core.errors import OtherSettings, OtherVersions
from tidewolf.experiments import RunFolder
from tidewolf.problems import base

BEFORE, AFTER = 40, 1000


def elsewhere(program, *words, cwd=None):
    """What a Python program prints on the other machine, or on a plain one if this process has the
    other's arithmetic. Kernels are those of this machine: compiling them again takes long.
    """
    other = environment("Prescott")
    kept = {name: value for name, value in os.environ.items() if name not in other}
    changed = {} if os.environ.get("OPENBLAS_CORETYPE") == "Prescott" else other
    changed.pop("NUMBA_CPU_NAME", None)
    return python("-W", "default", "-c", program, *words, env={**kept, **changed}, cwd=cwd)


def learner(name):
    rng = np.random.default_rng(3)
    if name == "hull":
        return tw.LyapunovDescent(tw.sets.VertexHull(np.exp(rng.normal(size=(12, 6)))))
    return tw.LyapunovDescent(tw.sets.Spectraplex(4))


def feed(session, rounds):
    """Play rounds whose costs and constraints are the same everywhere: whole numbers over 97."""
    first = session.play().ravel().tolist()
    loss = violation = 0.0
    shape = session.play().shape
    i = np.arange(int(np.prod(shape)))
    for t in rounds:
        x = session.play()
        c = (((37 * t + 101 * i + 13 * t * i) % 97) / 97.0 + 0.5).reshape(shape)
        a = (((53 * t + 11 * i + 7 * t * i) % 97) / 97.0).reshape(shape)
        if len(shape) == 2:
            c, a = ((m + m.T) / 8 + np.diag(np.diag(m)) for m in (c, a))  # no cost near 0
        b = 0.6 * float(np.vdot(a, session.learner.K.center))
        loss += float(np.vdot(c, x))
        violation += max(0.0, float(np.vdot(a, x)) - b)
        session.observe(loss=tw.functions.Linear.one(c), constraint=tw.functions.Affine.one(a, b))
    return first, loss, violation


RESUME = """
import json, sys, warnings
import tidewolf as tw
from test_other_machine import BEFORE, AFTER, feed, learner
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    session = tw.Session.open(sys.argv[1], learner(sys.argv[2]))
with session:
    found = feed(tw.Session(session.learner, session.state), range(BEFORE, BEFORE + AFTER))
print(json.dumps([found, [[type(one.message).__name__, str(one.message)] for one in said]]))
"""


@pytest.mark.parametrize("name", ["hull", pytest.param("matrices", marks=pytest.mark.soak)])
def test_a_session_continues(name, tmp_path):
    mine = learner(name)
    with tw.Session.open(tmp_path / "a.db", mine) as session:
        feed(session, range(BEFORE))
        state = session.state
    there, said = json.loads(elsewhere(RESUME, tmp_path / "a.db", name))
    assert [kind for kind, _ in said] == ["OtherVersions"]
    assert "blas" in said[0][1]
    here = feed(tw.Session(mine, state), range(BEFORE, BEFORE + AFTER))
    np.testing.assert_allclose(there[0], here[0], rtol=0, atol=1e-9 * mine.K.diameter)
    assert abs(there[1] - here[1]) <= 1e-3 * abs(here[1])
    assert abs(there[2] - here[2]) <= 5e-2 * here[2] + 1e-9 * AFTER


COMMANDS = """
import sys
from tidewolf.cli import main
sys.exit(main(["resume", "cut", "--quiet"]) or main(["report", "whole", "--quiet"]))
"""


@pytest.fixture
def interrupted(here):
    """A run that was stopped, of a generated problem whose numbers depend on the arithmetic."""
    words = ["run", "completion", "--rounds", "20", "--learner", "LyapunovDescent", "--quiet"]
    assert main([*words, "--out", "whole"]) == 0
    run = RunFolder.create(here / "cut", RunFolder.open(here / "whole").experiment)
    with pytest.raises(tw.core.errors.Interrupted):
        run.play(stopping=lambda: True)
    return here


def test_a_run_resumes_and_is_reported(interrupted):
    elsewhere(COMMANDS, cwd=interrupted)
    files = [interrupted / name / "summary.json" for name in ("whole", "cut")]
    whole, cut = (json.loads(file.read_text())["runs"][0]["loss"]["total"] for file in files)
    assert abs(cut - whole) <= 1e-3 * abs(whole)


def test_a_run_of_another_generator_is_refused(interrupted, monkeypatch):
    monkeypatch.setattr(base, "GENERATOR_VERSION", base.GENERATOR_VERSION + 1)
    with pytest.raises(OtherSettings):
        RunFolder.open(interrupted / "cut").play()


GENERATED = ["routing", "sdp", "completion", "portfolio", "scheduling", "adversarial"]


@pytest.mark.parametrize("name", [*GENERATED, pytest.param("pairs", marks=needs_records)])
def test_generators_make_what_they_made(name):
    """If one of these changes, raise GENERATOR_VERSION."""
    expected = json.loads((Path(__file__).parent / "fixtures" / "generators.json").read_text())
    assert expected["version"] == base.GENERATOR_VERSION
    problem = tw.problems.named(name)(rounds=20, seed=1)
    parts = (problem.stream.losses, problem.stream.constraints)
    found = [float(np.sum(part.values(problem.K.center))) for part in parts]
    np.testing.assert_allclose(found, expected[name], rtol=1e-6, atol=1e-9)


def test_tables_count_by_their_bytes_and_a_report_needs_none(here):
    rng = np.random.default_rng(0)
    for name, low in (("costs", 0.0), ("capacities", 0.4)):
        rows = [",".join(f"{x:.3f}" for x in row) for row in low + rng.random((30, 3))]
        Path(f"{name}.csv").write_text("\n".join(["a,b,c", *rows]) + "\n")
    text = "rounds = 30\n" + SIMPLEX + played_by('"LyapunovDescent"')
    Path("tables.toml").write_text(text)
    assert main(["run", "tables.toml", "--out", "out", "--quiet"]) == 0
    text = Path("costs.csv").read_text()
    Path("costs.csv").write_text(text.replace("\n", "\n\n", 1))  # the same numbers, other bytes
    assert main(["resume", "out", "--quiet"]) == 2
    Path("costs.csv").unlink()
    Path("capacities.csv").unlink()
    page = Path("out/report.html").read_text()
    Path("out/report.html").unlink()
    assert main(["report", "out", "--quiet"]) == 0
    assert _undated(Path("out/report.html").read_text()) == _undated(page)


def _undated(page):
    return page.partition("<dt>written</dt>")[0]


def test_the_writer_names_processor_and_blas():
    here = checkpoint.writer()
    assert here["cpu"] not in ("", "unknown")
    assert here["blas"] != "unknown"
    with warnings.catch_warnings():
        warnings.simplefilter("error", OtherVersions)
        mine = learner("hull")
        mine.load(mine.save(mine.start()))
