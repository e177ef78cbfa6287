"""Run the numerical tests under the arithmetic of other processors.

    python -m tools.portable [NAME ...]       Prescott, Haswell, SkylakeX, Zen; all by default

OpenBLAS, NumPy and numba choose code for the processor they find, and each choice rounds
differently. An arithmetic makes these choices for another processor, by environment variables:

    OPENBLAS_CORETYPE           the kernels of OpenBLAS, in NumPy and in SciPy
    NPY_DISABLE_CPU_FEATURES    the features of this processor that NumPy must not use
    NUMBA_CPU_NAME              the processor that numba compiles for

An arithmetic that this machine cannot execute, or that its OpenBLAS has no kernels for, is skipped
with a printed reason. The exit status is 1 if tests fail under any other.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from numpy._core import _multiarray_umath as machine

ROOT = Path(__file__).resolve().parent.parent


class Arithmetic(NamedTuple):
    """What a processor of this name has; OpenBLAS knows its kernels by the same name."""

    needs: tuple[str, ...]
    """features, as NumPy names them, that the machine must have"""
    lacks: str
    """a pattern for the features that NumPy must not use"""
    numba: str | None = None
    """the processor that numba compiles for; None: this one"""


ARITHMETICS = {
    "Prescott": Arithmetic(("SSE3",), r".*", "generic"),
    "Haswell": Arithmetic(("AVX2", "FMA3"), r"X86_V4|AVX512.*"),
    "SkylakeX": Arithmetic(("AVX2", "FMA3", "AVX512F", "AVX512_SKX"), r"AVX512_(CLX|CNL|ICL|SPR)"),
    "Zen": Arithmetic(("AVX2", "FMA3"), r"X86_V4|AVX512.*"),
}

NOT_NUMERICAL = re.compile(
    r"""test_(
    archive|backup|browser|cli|client|container|dates|decision_files|description|doctor|experiments|
    files.*|folder|frames|front_doors|haproxy|hosted.*|jit|live|own_data|postgres.*|preview|public|
    report.*|round_reader|serve.*|service.*|session_store|storage.*|storm|sweep|tournament
    )\.py""",
    re.VERBOSE,
)
"""Tests of files, commands, services, pages and the repository. All others test numbers, in the
layers up to evaluation and sessions.
"""

SAME_KERNELS = {"Katmai": "Prescott"}
"""OpenBLAS reports the first of the processors that share kernels."""

PROBE = """
import json, threadpoolctl, scipy.linalg
from numpy._core import _multiarray_umath as machine
from numba.core import registry
print(json.dumps({
    "blas": sorted({found.get("architecture", "") for found in threadpoolctl.threadpool_info()
                    if found["user_api"] == "blas"}),
    "numpy": [name for name in machine.__cpu_dispatch__ if machine.__cpu_features__[name]],
    "numba": registry.cpu_target.target_context.codegen().magic_tuple()[1],
}))
"""


def environment(name: str) -> dict[str, str]:
    """The variables that choose an arithmetic. NumPy refuses names outside `__cpu_dispatch__`."""
    arithmetic = ARITHMETICS[name]
    chosen = {
        "OPENBLAS_CORETYPE": name,
        "NPY_DISABLE_CPU_FEATURES": " ".join(
            feature
            for feature in machine.__cpu_dispatch__
            if machine.__cpu_features__[feature] and re.fullmatch(arithmetic.lacks, feature)
        ),
    }
    return chosen | ({"NUMBA_CPU_NAME": arithmetic.numba} if arithmetic.numba else {})


def missing(name: str) -> list[str]:
    """The features that this machine lacks for an arithmetic."""
    has = machine.__cpu_features__
    return [feature for feature in ARITHMETICS[name].needs if not has.get(feature)]


def used(name: str) -> dict[str, list[str] | str]:
    """What OpenBLAS, NumPy and numba use in a process with the environment of an arithmetic."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE],
        env=os.environ | environment(name),
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, list[str] | str] = json.loads(done.stdout)
    return found | {"blas": [SAME_KERNELS.get(each, each) for each in found["blas"]]}


def reason_to_skip(name: str) -> str | None:
    """Why an arithmetic is not run here; None if it is."""
    if lacking := missing(name):
        return f"this processor has no {', '.join(lacking)}"
    if (blas := used(name)["blas"]) != [name]:
        return f"NumPy and SciPy use the BLAS kernels {', '.join(blas) or 'of no OpenBLAS'} for it"
    return None


def numerical_tests() -> list[str]:
    """The test files that run under other arithmetics."""
    return [
        str(file)
        for file in sorted((ROOT / "tests").glob("test_*.py"))
        if not NOT_NUMERICAL.fullmatch(file.name)
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.portable", description="Run the numerical tests on other arithmetics."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(ARITHMETICS))
    asked = parser.parse_args(arguments).names or list(ARITHMETICS)
    if unknown := set(asked) - set(ARITHMETICS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(ARITHMETICS)}")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", "not soak"]
    command += numerical_tests()
    failed = []
    for name in asked:
        if reason := reason_to_skip(name):
            print(f"{name}: skipped, {reason}.", flush=True)
            continue
        chosen = environment(name)
        print(f"{name}:", *(f'{key}="{value}"' for key, value in chosen.items()), flush=True)
        env = os.environ | chosen
        if subprocess.run(command, cwd=ROOT, env=env, check=False).returncode:
            failed.append(name)
    print(f"failed: {', '.join(failed)}" if failed else "No test failed.")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
