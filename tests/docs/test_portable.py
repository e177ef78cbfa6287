"""`make portable`: environments take effect, and what cannot run is skipped."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from tools import portable


def test_an_arithmetic_takes_effect() -> None:
    """The one that .ci/run relies on: OpenBLAS, NumPy and numba all leave their own choice."""
    if lacking := portable.missing("Prescott"):
        pytest.skip(f"this processor has no {lacking}")
    assert portable.used("Prescott") == {"blas": ["Prescott"], "numpy": [], "numba": "generic"}
    assert portable.reason_to_skip("Prescott") is None


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """Environments in which pytest would run, on an old processor, and fail with SSE alone."""
    features = dict.fromkeys(["SSE3", "AVX2", "FMA3", "AVX512F", "AVX512_SKX", "X86_V4"], False)
    features |= {"SSE3": True, "AVX2": True, "FMA3": True}
    machine = SimpleNamespace(__cpu_features__=features, __cpu_dispatch__=["AVX2", "X86_V4"])
    monkeypatch.setattr(portable, "machine", machine)
    monkeypatch.setattr(
        portable, "used", lambda name: {"blas": ["Haswell" if name == "Zen" else name]}
    )
    seen: list[dict[str, str]] = []

    def run(command: list[str], env: dict[str, str], **options: object) -> SimpleNamespace:
        assert {"pytest", "not soak"} < set(command)
        seen.append(env)
        return SimpleNamespace(returncode=int(env["OPENBLAS_CORETYPE"] == "Prescott"))

    monkeypatch.setattr(portable.subprocess, "run", run)
    return seen


def test_what_cannot_be_executed_is_skipped_and_one_failure_fails_all(
    runs: list[dict[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert portable.main(["Haswell", "SkylakeX", "Zen"]) == 0
    assert runs[0]["NPY_DISABLE_CPU_FEATURES"] == ""
    assert "SkylakeX: skipped, this processor has no AVX512F" in capsys.readouterr().out
    assert portable.main([]) == 1
    cores = [env["OPENBLAS_CORETYPE"] for env in runs]
    assert cores == ["Haswell", "Prescott", "Haswell"]
    assert runs[1]["NPY_DISABLE_CPU_FEATURES"] == "AVX2"  # all that there is to disable


def test_the_numerical_part_is_tests_of_numbers() -> None:
    chosen = {Path(file).stem for file in portable.numerical_tests()}
    assert {"test_projection", "test_learners", "test_session", "test_evaluation"} <= chosen
    assert not {"test_cli", "test_service", "test_storage_places", "test_portable"} & chosen
