"""What the package shows to the outside, what it imports when, and what a newcomer gets wrong."""

import importlib
import pkgutil
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tidewolf as tw
from interpreter import python
from refused import refused
from tidewolf.core import errors, vertices

README = Path(__file__).parent.parent / "README.md"
PARTS = "baselines experiments experts functions learners networks problems projection sets"
PARTS = (*PARTS.split(), "testing")


def test_everything_promised_is_there():
    for name in tw.__all__:
        assert getattr(tw, name) is not None
    assert sorted(tw.__all__) == tw.__all__
    assert set(tw.__all__) <= set(dir(tw))


@pytest.mark.parametrize("part", PARTS)
def test_parts_export_what_they_say(part):
    module = importlib.import_module(f"tidewolf.{part}")
    assert sorted(module.__all__) == list(module.__all__)
    for name in module.__all__:
        assert getattr(module, name).__doc__, f"tidewolf.{part}.{name} has no docstring"


def test_every_module_opens_with_what_it_is():
    for info in pkgutil.walk_packages(tw.__path__, "tidewolf."):
        assert importlib.import_module(info.name).__doc__, f"{info.name} has no docstring"


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="no attribute 'frobnicate'"):
        tw.frobnicate  # noqa: B018


def test_the_readme_runs_and_prints_what_it_shows(capsys):
    found = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", README.read_text(), re.DOTALL)
    [(code, shown)] = found
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    for line, expected in zip(printed, shown.splitlines(), strict=True):
        for a, b in zip(line.split(), expected.split(), strict=True):
            if b[0].isdigit():  # a digit of the last place for other arithmetic
                assert float(a) == pytest.approx(float(b), rel=1e-3, abs=2e-4)
            else:
                assert a == b


# --- what is imported when ------------------------------------------------------------------------

HEAVY = {"scipy", "numba", "pandas", "matplotlib", "typer", "rich", "networkx", "torch", "piqp"}
HEAVY |= {"pyarrow"}


LOADED = """
import sys
import tidewolf as tw
print(*{name.partition('.')[0] for name in sys.modules})
parts = (tw.sets, tw.functions, tw.learners, tw.projection)
for part in (*parts, tw.LyapunovDescent, tw.Stream, tw.play):
    assert part
print(*{name.partition('.')[0] for name in sys.modules})
"""


def test_tidewolf_sets_functions_and_learners_import_nothing_heavy():
    assert not HEAVY & set(python("-c", LOADED).split())


RUN = """
import numpy as np
import tidewolf as tw

rng = np.random.default_rng(0)
for K in (tw.sets.Simplex(4), tw.sets.Box(np.zeros(4), np.ones(4))):
    limits = tw.functions.Capacity(0.3 + 0.4 * rng.random((50, 4)))
    stream = tw.Stream(tw.functions.Linear(rng.random((50, 4))), limits)
    run = tw.run(tw.LyapunovDescent(K, horizon=50), stream)
    assert run.max_infeasibility <= 1e-9
    print(float(run.losses.sum()).hex(), float(run.violations.sum()).hex(), run.oracle_calls)
"""


def test_dense_sets_run_without_numba_and_give_the_same_bits_and_import_no_report():
    without = python("-c", f"import sys; sys.modules['numba'] = None\n{RUN}")
    more = "import sys; tw.compare, tw.intervals, tw.rates, print(*sys.modules)"
    judged = python("-c", RUN + more)
    *printed, loaded = judged.splitlines()
    assert without.splitlines() == printed
    assert len(printed) == 2
    assert not [name for name in loaded.split() if name.startswith("tidewolf.report")]


# --- what a newcomer gets wrong -------------------------------------------------------------------

K = tw.sets.Simplex(3)
STREAM = tw.Stream(tw.functions.Linear(np.eye(3)), tw.functions.Capacity(np.full((3, 3), 0.5)))


@pytest.mark.parametrize(
    "typed",
    [
        lambda: tw.run(tw.LyapunovDescent(K), [1]),
        lambda: list(tw.play(tw.LyapunovDescent(K), STREAM, (1, 2))),
        lambda: tw.LyapunovDescent(K).load("text"),
    ],
    ids=["stream", "state", "saved state"],
)
def test_what_is_of_another_kind_is_refused(typed):
    with refused(errors.WrongType):
        typed()


def test_functions_and_sets_of_two_libraries_are_told_how_to_meet():
    strict = pytest.importorskip("array_api_strict")
    limits = tw.functions.Capacity(strict.asarray(np.ones((3, 3))))
    stream = tw.Stream(tw.functions.Linear(strict.asarray(np.eye(3))), limits)
    with refused(errors.WrongType):
        tw.run(tw.LyapunovDescent(K), stream)


class Segment(tw.sets.ConvexSet):
    """The points (t, 1 - t); not a dataclass, and told so only where that matters."""

    shape, center, radius, diameter = (2,), np.array([0.5, 0.5]), 0.5**0.5, 2.0**0.5
    ends = np.array([0.0, 1.0]), np.array([1.0, 0.0])
    answers: Any = staticmethod(lambda first, ends=ends: ends[bool(first)].copy())

    def lmo(self, direction):
        return self.answers(direction[0] <= direction[1])

    def infeasibility(self, x):
        return max(0.0, -float(np.min(x)), abs(float(np.sum(x)) - 1.0))

    @classmethod
    def examples(cls):
        return (cls(),)


def a_run(K):
    rng, limits = np.random.default_rng(0), tw.functions.Capacity(np.full((40, 2), 0.8))
    stream = tw.Stream(tw.functions.Linear(rng.normal(size=(40, 2))), limits)
    return tw.run(tw.LyapunovDescent(K, horizon=40), stream)


def test_a_plain_class_runs_and_prints_but_cannot_be_saved():
    run = a_run(Segment())
    assert "Segment(...)" in repr(run)
    assert run.oracle_calls > 0
    with refused(errors.NotSupported):
        run.learner.save(run.final_state)


@pytest.mark.parametrize(
    "answers",
    [
        lambda first: [int(first), int(not first)],
        lambda first: np.array([first, not first], dtype=int),
        lambda first: np.array([first, not first], dtype=np.float32),
    ],
    ids=["lists", "integers", "float32"],
)
def test_answers_of_other_kinds_are_understood(answers):
    class Other(Segment):
        pass

    Other.answers = staticmethod(answers)
    np.testing.assert_allclose(a_run(Other()).losses, a_run(Segment()).losses)


def test_an_oracle_may_keep_its_buffer():
    buffer = np.zeros(2)

    class Reusing(Segment):
        def lmo(self, direction):
            buffer[:] = super().lmo(direction)
            return buffer

    np.testing.assert_array_equal(a_run(Reusing()).losses, a_run(Segment()).losses)


def test_atoms_of_another_kind_than_the_answers_are_told_apart():
    class Forgetful(Segment):
        def answer(self, direction, warm=None):
            return tw.sets.Simplex(2).answer(direction)

    with refused(errors.WrongType):
        a_run(Forgetful())
    assert isinstance(tw.sets.Simplex(2).answer(np.ones(2)).vertex, vertices.Sparse)


def test_the_users_functions_are_called_once_a_round(monkeypatch):
    """But for the first ten, in which their gradients are tested; and never of a round to come.
    Nor is the set's oracle asked more often than the run says.
    """
    asked, answered, right = [], [], tw.sets.L2Ball.answer

    def answer(K, *given):
        answered.append(1)
        return right(K, *given)

    monkeypatch.setattr(tw.sets.L2Ball, "answer", answer)

    def value(t, x):
        asked.append(t)
        return float(x[0])

    losses = tw.functions.Custom(value, lambda t, x: np.eye(3)[0], shape=(3,), rounds=15)
    stream = tw.Stream(losses, tw.functions.Capacity(np.ones((15, 3))))
    run = tw.run(tw.LyapunovDescent(tw.sets.L2Ball(3), horizon=15), stream)
    assert len(answered) == run.oracle_calls > 0
    assert asked == sorted(asked)
    assert asked[-5:] == [10, 11, 12, 13, 14]
    assert max(map(asked.count, range(10))) <= 20
