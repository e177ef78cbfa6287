"""Every public name teaches itself: its parameters are explained, and its example runs."""

import doctest
import inspect
import warnings

import numpy as np
import pytest
from tools.docstrings import declared, documented, entries, parameters, sections
from tools.public import public

import tidewolf as tw

PUBLIC, DECLARED = dict(public()), dict(documented())
NEEDS = {
    "FileFormat": ("pandas", "app"), "Follower": ("pandas", "app"),
    "OnlineAllocator": ("sklearn", "sklearn"), "from_cvxpy": ("cvxpy", "cvx"),
    "from_jax": ("jax", "jax"), "from_files": ("pandas", "app"),
    "from_torch": ("torch", "torch"), "read_graph": ("pandas", "app"),
    "read_table": ("pandas", "app"),
}  # fmt: skip
"""Examples that need a package, and its extra."""


@pytest.mark.parametrize("path", PUBLIC)
def test_every_public_name_has_a_docstring_with_an_example_that_runs(path):
    thing = PUBLIC[path]
    if needed := NEEDS.get(path.rpartition(".")[2]):
        package, extra = needed
        said_of_it = f'{package} is not installed; pip install "tidewolf[{extra}]" runs this'
        pytest.importorskip(package, reason=said_of_it)
    tests = doctest.DocTestParser().get_doctest(
        inspect.cleandoc(thing.__doc__ or ""), {"tw": tw, "np": np}, path, None, None
    )
    assert tests.examples, "it has no >>> example"
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        runner.run(tests, out=said.append)
    assert runner.failures == 0, "".join(said)


@pytest.mark.parametrize("path", PUBLIC)
def test_every_parameter_of_a_public_name_is_explained(path):
    thing = PUBLIC[path]
    if inspect.isclass(thing) and (inspect.isabstract(thing) or issubclass(thing, BaseException)):
        return
    wanted = [name for name in inspect.signature(thing).parameters if not name.startswith("_")]
    explained = entries(sections(thing.__doc__ or "").get("Parameters", ""))
    heads = [head.partition(" :")[0].split(",") for head in explained if head]
    names = [name.strip(" *") for several in heads for name in several]
    assert names == wanted
    assert all(explained[head] for head in explained if head)


@pytest.mark.parametrize("path", [path for path in PUBLIC if not inspect.isclass(PUBLIC[path])])
def test_every_public_function_says_what_it_returns(path):
    function = PUBLIC[path]
    annotation = inspect.signature(function).return_annotation
    if annotation not in (None, "None"):
        found = sections(function.__doc__ or "")
        assert "Returns" in found or "Yields" in found


@pytest.mark.parametrize("path", DECLARED)
def test_parameters_are_those_declared(path):
    thing = DECLARED[path]
    make = thing if inspect.isclass(thing) else _bound(path)
    assert sections(thing.__doc__ or "")["Parameters"].strip() == parameters(declared(make)).strip()


def _bound(path):
    thing = tw
    for part in path.split(".")[1:]:
        thing = getattr(thing, part)
    return thing
