"""The wheel and the sdist, built twice in different places: they must be the same to the bit.

    python -m tools.dist [--out dist]

The files that git tracks are copied to two folders whose paths, times, permissions and environment
differ, and built there by hatchling under the time of the last commit (SOURCE_DATE_EPOCH). A third
wheel is built from the sdist. Where all agree they are put into `dist`, with SHA256SUMS; else
nothing is, and the exit code is 1. Who has the same commit and the same hatchling gets the same
files.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def tracked() -> list[str]:
    """The files that are built from: what git tracks, where it is still there."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, text=True, check=True
    ).stdout
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def last_commit() -> int:
    """Its time, in seconds since 1970."""
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def copied(folder: Path, mode: int, when: float) -> Path:
    """A copy of the tracked files with these permissions and times."""
    for name in tracked():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
        (folder / name).chmod(mode | (0o100 if os.access(ROOT / name, os.X_OK) else 0))
        os.utime(folder / name, (when, when))
    return folder


def built(folder: Path, out: Path, epoch: int, *targets: str, **environment: str) -> dict[str, str]:
    """What hatchling makes of a folder: names of files, and their digests."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(out)]
    for target in targets:
        command += ["-t", target]
    inherited = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    environment = {**inherited, "SOURCE_DATE_EPOCH": str(epoch), **environment}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"hatchling failed:\n{done.stdout}{done.stderr}")
    return {path.name: digest(path) for path in sorted(out.iterdir())}


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def unpacked(archive: Path, folder: Path) -> Path:
    """The one folder that an sdist holds."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    (inside,) = folder.iterdir()
    return inside


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.dist", description="Wheel and sdist.")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where they go")
    asked = parser.parse_args()
    epoch = last_commit()
    with tempfile.TemporaryDirectory(prefix="tidewolf-dist-") as name:
        place = Path(name)
        both = "sdist", "wheel"
        one, other = place / "one", place / "another" / "folder"
        first = built(copied(one, 0o644, 1.7e9), place / "a", epoch, *both, TZ="UTC")
        far = {"TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7", "HOME": str(place)}
        second = built(copied(other, 0o600, 1.2e9), place / "b", epoch, *both, **far)
        (sdist,) = (place / "a").glob("*.tar.gz")
        third = built(unpacked(sdist, place / "unpacked"), place / "c", epoch, "wheel")
        if first != second or not third.items() <= first.items():
            for what, found in (("one", first), ("another", second), ("from the sdist", third)):
                print(f"{what}: {found}")
            print("The builds differ: what is built depends on where or when.")
            return 1
        asked.out.mkdir(parents=True, exist_ok=True)
        for file in first:
            shutil.copyfile(place / "a" / file, asked.out / file)
    lines = [f"{found}  {file}\n" for file, found in first.items()]
    (asked.out / "SHA256SUMS").write_text("".join(lines))
    print("".join(lines), end="")
    print("Built twice, and from the sdist: the same to the bit.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
