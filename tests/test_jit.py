"""Machine code is that of the source in the tree: the cache key of kernels, and their files."""

import contextlib
import copy
import gc
import importlib
import importlib.util
import io
import logging
import os
import pkgutil
import subprocess
import sys
import threading
from collections import Counter
from types import ModuleType

import numba
import numpy as np
import pytest

import tidewolf as tw
from tidewolf import cli
from tidewolf.cli.app import invoke
from tidewolf.core import errors, jit, jit_cache
from tidewolf.methods.kernel_functions import Functions


def every_kernel():
    for info in pkgutil.walk_packages(tw.__path__, "tidewolf."):
        importlib.import_module(info.name)
    kernels = [thing for thing in gc.get_objects() if type(thing) is jit.Kernel]
    own = [each for each in kernels if each.plain.__module__.startswith("tidewolf.")]
    return [each for each in own if each.plain.__closure__ is None]  # others may hold any kernel


def test_lines_and_files_do_not_count_and_what_is_given_does():
    source = "def f(x):\n    return g(x) + A\n"

    def made(source, name, **meanings):
        space = {"__name__": "somewhere", **meanings}
        exec(compile(source, name, "exec"), space)
        return jit.kernel(space["f"])

    def twice(x):
        return 2 * x

    def thrice(x):
        return 3 * x

    g = jit.kernel(twice)
    first = made(source, "a.py", g=g, A=1.0)
    assert made("\n\n# a comment\n" + source, "b.py", g=g, A=1.0).key == first.key
    others = [
        made(source, "a.py", g=g, A=1),
        made(source, "a.py", g=g, A=-1.0),
        made(source, "a.py", g=g, A=np.float32(1.0)),
        made(source, "a.py", g=g, A=np.ones(1)),
        made(source, "a.py", g=g, A=np.zeros(1)),
        made(source, "a.py", g=g, A=np.dtype(np.int32)),
        made(source, "a.py", g=g, A=np.dtype([("x", np.int32)])),
        made(source, "a.py", g=g, A=(1.0,)),
        made(source, "a.py", g=jit.kernel(thrice), A=1.0),
        made(source.replace("(x):", "(x=2.0):"), "a.py", g=g, A=1.0),
        made(source.replace("(x):", "(x=3.0):"), "a.py", g=g, A=1.0),
        made(source.replace(" + ", " - "), "a.py", g=g, A=1.0),
    ]
    keys = [first.key, *(other.key for other in others)]
    assert len(set(keys)) == len(keys)
    assert None not in keys


def test_constants_that_are_closed_over_count():
    def scaled(by):
        def f(x):
            return by * x

        return jit.kernel(f)

    assert scaled(2.0).key == scaled(2.0).key != scaled(3.0).key
    assert (scaled(2.0)(5.0), scaled(3.0)(5.0)) == (10.0, 15.0)


def test_numbers_in_a_module_of_ones_own_are_read_and_the_code_is_not_kept():
    def of_module(value):
        numbers = ModuleType("numbers_of_mine")
        numbers.value = value
        space = {"numbers": numbers, "__name__": "somewhere"}
        exec("def f(x):\n    return numbers.value * x\n", space)
        return jit.kernel(space["f"])

    assert of_module(2.0).key is None
    assert (of_module(2.0)(5.0), of_module(3.0)(5.0)) == (10.0, 15.0)


def test_what_cannot_be_told_apart_is_not_kept():
    space = {"__name__": "somewhere", "opaque": object()}
    exec("def h(x):\n    return opaque", space)
    assert jit.kernel(space["h"]).key is None
    caller = {"__name__": "somewhere", "h": jit.kernel(space["h"])}
    exec("def f(x):\n    return h(x)", caller)
    assert jit.kernel(caller["f"]).key is None


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A cache folder of the test's own."""
    monkeypatch.setattr(jit_cache.config, "CACHE_DIR", str(tmp_path / "cache"))
    jit_cache.folder_of.cache_clear()
    yield tmp_path / "cache" / "tidewolf"
    jit_cache.folder_of.cache_clear()


def load(folder, name):
    """A module of a file as it is now, as a new process would see it."""
    importlib.invalidate_caches()
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    source = (folder / f"{name}.py").read_text()  # never through a .pyc, which trusts times
    sys.modules[name] = module
    exec(compile(source, str(folder / f"{name}.py"), "exec", dont_inherit=True), module.__dict__)
    return module


def test_a_tree_that_is_put_back_runs_its_own_code(kept, tmp_path, monkeypatch):
    below, above = tmp_path / "below_of_test.py", tmp_path / "above_of_test.py"
    header = "from tidewolf.core.jit import kernel\n"
    walk = "@kernel\ndef walk(x):\n    return 10.0 * step(x)\n"
    above.write_text(f"{header}from below_of_test import step\n\n{walk}")
    for path in (below, above):
        monkeypatch.setitem(sys.modules, path.stem, None)

    def played(source):
        """What the caller in an untouched file answers, and whether it was found on disk."""
        below.write_text(header + source)
        for path in (below, above):
            os.utime(path, (1e9, 1e9))  # no file ever looks newer
        load(tmp_path, "below_of_test")
        walk = load(tmp_path, "above_of_test").walk
        return walk(1.0), sum(walk.compiled.stats.cache_hits.values())

    one = "A = 1.0\n\n@kernel\ndef step(x):\n    return x + A\n"
    assert played(one) == (20.0, 0)
    assert played(one) == (20.0, 1)
    assert played(one.replace("x + A", "x - A")) == (0.0, 0)
    assert played(one.replace("A = 1.0", "A = 3.0")) == (40.0, 0)
    assert played(one) == (20.0, 1)
    assert played("# moved down\n\n" + one) == (20.0, 1)


def test_a_damaged_entry_is_compiled_again_and_old_ones_do_not_pile_up(kept):
    def answers():
        def half(x):
            return 0.5 * x

        found = jit.kernel(half)
        return found(3.0), sum(found.compiled.stats.cache_hits.values())

    assert answers() == (1.5, 0)
    assert answers() == (1.5, 1)
    (entry,) = kept.iterdir()
    whole = entry.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    for damaged in (b"", whole[:-1], bytes(flipped), b"?" * 100):
        entry.write_bytes(damaged)
        assert answers() == (1.5, 0)
        assert answers() == (1.5, 1)
    name = entry.name.split("-")[0]
    for i in range(3 * jit_cache.OLD):
        old = kept / f"{name}-{i:032x}-0{jit_cache.SUFFIX}"
        old.write_bytes(b"")
        os.utime(old, (1e9 + i, 1e9 + i))
    stranger = kept / f"{name}_else-0-0{jit_cache.SUFFIX}"
    stranger.write_bytes(b"")
    entry.write_bytes(b"")
    assert answers() == (1.5, 0)
    left = sorted(path.name for path in kept.iterdir() if path not in (entry, stranger))
    newest = range(2 * jit_cache.OLD, 3 * jit_cache.OLD)
    assert left == [f"{name}-{i:032x}-0{jit_cache.SUFFIX}" for i in newest]
    assert entry.exists()
    assert stranger.exists()


def test_what_is_compiled_is_counted_and_what_is_loaded_is_not(kept):
    """A kernel that another calls is a part of it; loading a caller loads what it calls with it,
    and a process that has loaded can compile afterwards.
    """

    def played():
        def below(x):
            return x + 1.0

        inner, before = jit.kernel(below), len(jit.COMPILED)

        def above(x):
            return 2.0 * inner(x[0])

        assert jit.kernel(above)(np.array([1.0])) == 4.0
        found = jit.COMPILED[before:]
        assert all(each.seconds > 0.0 for each in found)
        return [each.name.rpartition("_")[2].rpartition(".")[2] for each in found]

    assert played() == ["above"]
    assert played() == []
    assert len(list(kept.iterdir())) == 1


ABOVE = """
from tidewolf.core.jit import kernel

@kernel
def below(x):
    return x + 1.0

@kernel
def above(x):
    return 2.0 * below(x[0])
"""
OTHER_PROCESS = """
import contextlib, sys
from pathlib import Path
import numpy as np
import above_of_test
from tidewolf.core import jit, jit_cache

with contextlib.ExitStack() as held:
    for path in map(Path, sys.argv[1:]):
        held.enter_context(jit_cache._locked(path))
    print("ready", flush=True)
    sys.stdin.readline()
    above_of_test.above(np.ones(1))
    print(*(each.name for each in jit.COMPILED))
"""


@pytest.fixture
def other_process(tmp_path, monkeypatch):
    """Starts a process that imports kernels, and calls one at a line of input."""
    (tmp_path / "above_of_test.py").write_text(ABOVE)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, sys.path)]))
    monkeypatch.setitem(sys.modules, "above_of_test", None)
    with contextlib.ExitStack() as ended:

        def start(*words):
            command = [sys.executable, "-c", OTHER_PROCESS, *words]
            piped = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            process = ended.enter_context(subprocess.Popen(command, **piped))
            ended.callback(process.kill)
            assert process.stdout.readline() == "ready\n"
            return process

        yield start


def test_of_two_processes_one_compiles_and_the_other_loads(kept, tmp_path, other_process):
    other = other_process()
    above, before = load(tmp_path, "above_of_test").above, len(jit.COMPILED)
    print(file=other.stdin, flush=True)
    assert above(np.ones(1)) == 4.0
    theirs, _ = other.communicate()
    both = [*(each.name for each in jit.COMPILED[before:]), *theirs.split()]
    assert [name.rpartition(".")[2] for name in both] == ["above"]
    assert [path.suffix for path in kept.iterdir()] == [jit_cache.SUFFIX]


def test_a_lock_is_released_by_death_and_by_an_error(kept, tmp_path, other_process):
    def fails(x):
        return x.nothing

    with pytest.raises(numba.TypingError):
        jit.kernel(fails)(1.0)
    assert jit.CLOCK.depth == 0
    assert list(kept.iterdir()) == []
    above = load(tmp_path, "above_of_test").above
    other = other_process(str(above.compiled._cache.entry((numba.float64[::1],))))
    death = threading.Timer(0.2, other.kill)
    death.start()
    assert above(np.ones(1)) == 4.0
    assert other.wait() < 0
    death.join()


@pytest.fixture
def interpreted(monkeypatch):
    """Every light kernel is interpreted, and done again by machine code: the same bits, in answers
    and in arrays. How often, by name.
    """
    seen = Counter()

    def both(self, *args):
        if not self.light or jit.MODE.interprets:
            return right(self, *args)
        copies = copy.deepcopy(args)
        with jit.interpreting():
            found = jit._numbers(self.plain(*args))
        expected = self.compiled(*copies)
        assert repr(found) == repr(expected)
        for left, other in zip(args, copies, strict=True):
            if isinstance(left, np.ndarray):
                assert left.tobytes() == other.tobytes(), self.plain.__name__
        seen[self.plain.__name__] += 1
        return found

    right = jit.Kernel.__call__
    monkeypatch.setattr(jit.Kernel, "__call__", both)
    return seen


def test_light_kernels_give_the_bits_of_machine_code_and_call_light_ones_alone(interpreted):
    kernels = every_kernel()
    assert None not in [each.key for each in kernels]  # the code of each is kept
    light = [each for each in kernels if each.light]
    problem = tw.problems.named("routing")(rounds=40)
    for kind in (tw.PrimalDual, tw.DriftPlusPenalty, tw.baselines.SinhaVaze):
        run = tw.run(kind(problem.K, horizon=40), problem.stream)
    problem.K.paths(run.learner.act(run.final_state))
    vertex = problem.K.answer(problem.stream.losses.C[0]).vertex
    active = tw.projection.ActiveSet.start(problem.K).also(problem.K, vertex)
    active.atoms.inner(problem.stream.losses.C[0], 2)
    assert set(interpreted) <= {each.plain.__name__ for each in light}
    assert interpreted  # those whose code is kept here are not
    for each in light:
        called = [each.plain.__globals__.get(name) for name in each.plain.__code__.co_names]
        assert all(part.light for part in called if isinstance(part, jit.Kernel))


def test_a_light_kernel_is_compiled_when_that_is_worth_it(kept, monkeypatch):
    """If an array is large, or interpreting has cost enough."""

    def total(x):
        found = 0.0
        for i in range(len(x)):
            found += x[i]
        return found

    def compiled_after(*sizes):
        one, seen = jit.light_kernel(total), []
        for size in sizes:
            before = len(jit.COMPILED)
            found = one(np.ones(size))
            assert found == size
            assert type(found) is float
            seen.append(len(jit.COMPILED) - before)
        return seen

    monkeypatch.setattr(jit, "ENOUGH", 250)
    assert compiled_after(100, 100) == [0, 0]
    assert compiled_after(100, 100, 100, 100) == [0, 0, 1, 0]
    (entry,) = kept.iterdir()
    entry.unlink()
    assert compiled_after(251) == [1]


@pytest.mark.parametrize(
    ("owner", "writes", "error"),
    [
        (jit_cache.tempfile, "TemporaryFile", PermissionError(13, "Permission denied")),
        (jit_cache, "write", OSError(28, "No space left on device")),
    ],
    ids=["no place", "full disk"],
)
def test_code_that_cannot_be_kept_is_compiled_and_said_once(
    owner, writes, error, kept, monkeypatch
):
    def refused(*_, **__):
        raise error

    def doubled(x):
        return 2.0 * x

    def halved(x):
        return 0.5 * x

    monkeypatch.setattr(owner, writes, refused)
    jit_cache.warn_once.cache_clear()
    with pytest.warns(errors.NotCached, match="NUMBA_CACHE_DIR"):
        assert jit.kernel(doubled)(3.0) == 6.0
    assert jit.kernel(halved)(3.0) == 1.5  # a second warning would be an error
    assert not kept.exists() or list(kept.iterdir()) == []


def test_code_is_run_from_no_folder_of_another_user(kept, monkeypatch):
    assert jit_cache.folder_of("") == kept
    jit_cache.folder_of.cache_clear()
    monkeypatch.setattr(jit_cache.os, "geteuid", lambda: os.stat(kept).st_uid + 1)
    assert jit_cache.folder_of("") is None


# --- what a terminal shows ------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def fresh_notice(monkeypatch):
    """Nothing was announced yet, and logging is not configured."""
    monkeypatch.setattr(jit.LOGGER, "hasHandlers", lambda: False)  # pytest has its own
    jit.announce.cache_clear()
    yield monkeypatch
    jit.announce.cache_clear()


def test_compiling_is_said_once_at_a_terminal_without_logging(fresh_notice, tmp_path):
    def said(stream):
        jit.announce.cache_clear()
        fresh_notice.setattr(sys, "stderr", stream)
        made = numba.njit(lambda x: x)
        for _ in range(2):  # look for code that a cache does not have
            cache = jit_cache.KernelCache(made, tmp_path, "none", "key")
            cache.load_overload((), made.targetctx)
        return stream.getvalue().splitlines()

    assert len(said(Terminal())) == 1
    assert said(io.StringIO()) == []
    fresh_notice.setattr(jit.LOGGER, "level", logging.WARNING)
    assert said(Terminal()) == []


def test_a_quiet_command_announces_nothing(fresh_notice):
    fresh_notice.setattr(sys, "stderr", screen := Terminal())
    fresh_notice.setattr(cli.screen, "checking", lambda *args: jit.announce() or 1 / 0)
    for words in (["--quiet"], []):
        with pytest.raises(ZeroDivisionError):
            invoke(["check", "tidewolf.sets:Simplex", *words])
        assert bool(screen.getvalue()) is not bool(words)
        jit.announce.cache_clear()


def test_a_kernel_called_by_address_is_the_one_given():
    """Compiled, interpreted, and refused if it returns something else."""

    @jit.kernel
    def first(x):
        """Its twin is `x[0]`."""
        return x[0]

    @jit.kernel
    def last(x):
        """Its twin is `x[-1]`."""
        return x[-1]

    @jit.kernel
    def length(x):
        """Its twin is `len`."""
        return len(x)

    number = jit.Indirect(float, np.zeros(1))

    @jit.kernel
    def outer(address, x):
        """Its twin is the kernel at the address."""
        return 2.0 * number(address, x)

    x = np.array([1.0, 2.0, 3.0])
    for interprets in (False, True):
        with jit.interpreting(interprets):
            assert [outer(number.address(one), x) for one in (first, last)] == [2.0, 6.0]
    assert len(outer.compiled.signatures) == 1
    with pytest.raises(TypeError, match="length"):
        number.address(length)


def test_packed_arrays_come_back_as_they_were_given():
    """Read and written in place, compiled and interpreted; those of other kinds are refused."""
    packed = jit.Packed(np.zeros(1), np.zeros((1, 1)), np.zeros(1, np.int32))

    @jit.kernel
    def told(given):
        """Its twin is written out below."""
        x, A, where = packed(given)
        for i in range(len(where)):
            x[i] += A[where[i], 1]
        return A.shape[0] * 100 + len(x) * 10 + len(where)

    A, where = np.arange(6.0).reshape(3, 2), np.array([2, 0], dtype=np.int32)
    for interprets in (False, True):
        with jit.interpreting(interprets):
            x = np.array([1.0, 2.0])
            assert told(packed.pack(x, A, where)) == 322
            np.testing.assert_array_equal(x, [6.0, 3.0])
            assert told(packed.pack(np.zeros(0), A, where[:0])) == 300
    for wrong in ((x, A.T, where), (x, A[0], where), (x, A, where.astype(np.int64)), (x, A)):
        with pytest.raises((AssertionError, ValueError)):
            packed.pack(*wrong)


def test_all_that_a_kernel_with_arrays_calls_counts_references():
    """It would release slices that nobody has counted."""

    @jit.kernel
    def halves_of(x):
        return x[:2], x[2:]

    @jit.kernel
    def total(x):
        left, right = halves_of(x)
        return left[0] + right[0]

    @jit.kernel
    def pair(x):
        return np.full(2, total(x))

    def counts(code):
        return code.targetoptions["_nrt"]

    def part(code):
        return code.py_func.__closure__[0].cell_contents

    np.testing.assert_array_equal(pair(np.arange(4.0)), [2.0, 2.0])
    assert total(np.arange(4.0)) == 2.0
    for code, is_counted in ((pair.compiled, True), (total.compiled, False)):
        assert counts(code) is is_counted
        while code.py_func.__closure__:
            code = part(code)
            assert counts(code) is is_counted


def test_compiled_code_frees_what_it_takes():
    """Kernels that make arrays and those that count no references call one another."""
    from numba.core.runtime import _nrt_python, rtsys

    problem = tw.problems.routing(rounds=60)
    experts = [tw.experts.Season(problem.period), tw.experts.Resolve()]
    learner, stream = tw.Ensemble(problem.K, experts=experts), problem.stream
    functions = Functions.of(stream.losses, stream.constraints)._replace(stream=stream)
    _nrt_python.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats()
        with jit.interpreting(False):
            learner.compiled.play(learner.compiled.begin(learner.start()), functions, 0, 60)
        after = rtsys.get_allocation_stats()
    finally:
        _nrt_python.memsys_disable_stats()
    assert after.alloc - before.alloc > 0
    assert after.alloc - before.alloc == after.free - before.free
