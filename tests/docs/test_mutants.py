"""The mistakes of `make mutants` still apply to the code, each in one place, and the laws that they
name exist.
"""

import ast
from pathlib import Path

from mutants.table import NUMBERS, PATCHES, ROOT, every


def test_every_mistake_applies_and_is_a_program():
    mutants, numbered = every(), sum(len(places.split()) for places in NUMBERS.values())
    assert len(mutants) > sum(map(len, PATCHES.values())) + numbered
    assert len({mutant.name for mutant in mutants}) == len(mutants)
    for mutant in mutants:
        ast.parse(mutant.text)
        assert mutant.text != (ROOT / mutant.file).read_text(), mutant.name


def test_the_laws_they_name_exist():
    for checks in {mutant.checks for mutant in every()}:
        for law in checks.split():
            file, _, name = law.partition("::")
            assert not name or f"def {name}(" in (ROOT / Path(file)).read_text(), law
