"""`make portable`: environments take effect, and what cannot run is skipped."""

from pathlib import Path

import pytest
from tools import portable


def test_an_arithmetic_takes_effect():
    """The one that .ci/run relies on: OpenBLAS, NumPy and numba all leave their own choice."""
    if lacking := portable.missing("Prescott"):
        pytest.skip(f"this processor has no {lacking}")
    assert portable.used("Prescott") == {"blas": ["Prescott"], "numpy": [], "numba": "generic"}
    assert portable.reason_to_skip("Prescott") is None


def test_the_numerical_part_is_tests_of_numbers():
    chosen = {Path(file).stem for file in portable.numerical_tests()}
    assert {"test_projection", "test_learners", "test_session", "test_evaluation"} <= chosen
    assert not {"test_cli", "test_service", "test_storage_places", "test_portable"} & chosen
