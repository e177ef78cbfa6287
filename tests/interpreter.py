"""Programs in an interpreter of their own."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def python(*words, env=None, **how):
    """What a fresh interpreter prints, which finds this folder too; it ends well."""
    here = os.pathsep.join([str(HERE), *sys.path])
    done = subprocess.run(
        [sys.executable, "-W", "error", *map(str, words)],
        env={**(os.environ if env is None else env), "PYTHONPATH": here},
        **{"capture_output": True, "text": True, "check": False, "timeout": 600, **how},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
