"""Compiled loops stand apart: each names a reference that it agrees with, and where that is."""

import ast
import re
from pathlib import Path

import pytest

import tidewolf

HOME = Path(tidewolf.__file__).parent
FILES, TESTS = sorted((HOME / "kernels").glob("[!_]*.py")), Path(__file__).parent


def kernels(file):
    """Every compiled function of a file, with its docstring."""
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
            if decorators & {"kernel", "light_kernel"}:
                yield node.name, ast.get_docstring(node) or ""


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_kernel_or_its_file_names_its_reference_in_a_file_that_exists(file):
    head = ast.get_docstring(ast.parse(file.read_text())) or ""
    for name, doc in kernels(file):
        assert doc, f"{name} has no docstring"
        assert "reference" in (doc + head).lower(), f"{name} names no reference"
    for path in re.findall(r"tests/\w+\.py", file.read_text()):
        assert (TESTS.parent / path).exists(), path
