"""States as bytes, without pickle: versioned, and the same bits back.

    tidewolf state 3\n  |  sha256 of the rest  |  a line of JSON  |  arrays end to end

A state is a NamedTuple of numbers, text, None, arrays and `Stored` parts (an active set, its
vertices), nested as they like.
Floats travel as hexadecimal, arrays as they are. A file written under other settings is refused by
their fingerprint (core/values.py).
"""

import hashlib
import json
import math
import os
import platform
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, ClassVar, NamedTuple, Self

import numpy as np

from tidewolf.core import arguments, errors, sparse, values
from tidewolf.core.arrays import is_array, placed, to_numpy
from tidewolf.core.types import NDArray

STATE_FORMAT = 3
# What a warning names if it is not what the state was written with.
VERSIONS = ("tidewolf", "python", "numpy", "scipy", "numba", "cpu", "blas")
_MAGIC = b"tidewolf state "
_LONGEST_LINE, _DIGEST = 64, 32
_MANIFEST = 8 << 20


class Stored:
    """Something a state may hold beside numbers and arrays; `tag` names it in files."""

    tag: ClassVar[str]
    # the arguments of the class, which are attributes, too
    saved: ClassVar[tuple[str, ...]] = ()
    _kinds: ClassVar[dict[str, type["Stored"]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "tag" in cls.__dict__:
            Stored._kinds[cls.tag] = cls

    def parts(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.saved}

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> Self:
        """The same thing again from its parts; a ValueError says what is wrong with them."""
        return cls(*(parts[name] for name in cls.saved))

    def require_of(self, K: Any) -> None:
        """Refuse, by a ValueError, what does not belong to points of this set."""


class SavedRecord(dict[str, Any]):
    """The parts of a NamedTuple by name. The type is not in the file: the reader knows it
    (`conforming`).
    """


class Saved(NamedTuple):
    fields: dict[str, Any]
    writer: dict[str, str]


def dump(state: Any, *, settings: str, learner: str) -> bytes:
    """A state as bytes; `settings` is the fingerprint of the learner it belongs to."""
    arrays: dict[str, NDArray] = {}
    fields = {name: _pack(value, arrays) for name, value in state._asdict().items()}
    return _written(
        arrays, {"settings": settings, "learner": learner, "writer": writer(), "fields": fields}
    )


def _written(arrays: dict[str, NDArray], manifest: dict[str, Any]) -> bytes:
    body = _joined(arrays, manifest)
    return _MAGIC + f"{STATE_FORMAT}\n".encode() + hashlib.sha256(body).digest() + body


def _joined(arrays: dict[str, NDArray], manifest: Any) -> bytes:
    kinds = [(array.dtype.str, array.shape) for array in arrays.values()]
    line = json.dumps([manifest, kinds], separators=(",", ":")).encode()
    return b"".join([line, b"\n", *(array.tobytes() for array in arrays.values())])


def _parted(data: memoryview) -> tuple[dict[str, NDArray], Any]:
    end = bytes(data[: max(_MANIFEST, len(data) // 8)]).find(b"\n")
    if end < 0:  # JSON takes many times its size once it is read
        raise ValueError("its first line is none of a state")
    manifest, kinds = json.loads(bytes(data[:end]))
    arrays, start = dict[str, NDArray](), end + 1
    for i, (name, shape) in enumerate(kinds):
        count, dtype = math.prod(shape), np.dtype(name)
        if dtype.kind not in "biuf" or min(shape, default=0) < 0:
            raise ValueError(f"an array of {dtype} and shape {shape} is none of a state")
        arrays[f"a{i}"] = np.frombuffer(data, dtype, count, start).reshape(shape).copy()
        start += count * dtype.itemsize
    if start != len(data):
        raise ValueError(f"it has {len(data) - start} bytes beyond its arrays")
    return arrays, manifest


def with_session(
    data: bytes, info_ids: Mapping[int, str], contents: Mapping[int, str | None] | None
) -> bytes:
    """A saved state with what its session remembers of rounds: the identities of what was known
    when they were decided, and of what was observed of them (None: rounds have no numbers). No
    state depends on it; a repeated request gets the same answer.
    """
    notes = {"info": info_ids, "observed": contents}
    kept = {
        name: {number + 1: note for number, note in each.items()}
        for name, each in notes.items()
        if each is not None
    }
    if kept == {"info": {}} or not data.startswith(_MAGIC):  # a learner with a format of its own
        return data
    arrays, manifest = _read(data)
    return _written(arrays, {**manifest, "session": kept})


def session_of(data: bytes) -> tuple[dict[int, str], dict[int, str | None] | None]:
    session = _read(data)[1].get("session") if data.startswith(_MAGIC) else None
    notes = session if isinstance(session, dict) else {}
    info_ids = {number: note or "" for number, note in _by_round(notes.get("info")).items()}
    return info_ids, _by_round(notes["observed"]) if "observed" in notes else None


def _by_round(notes: Any) -> dict[int, str | None]:
    return {
        int(number) - 1: note
        for number, note in (notes.items() if isinstance(notes, dict) else ())
        if number.isdecimal() and (note is None or isinstance(note, str))
    }


def load(data: bytes, *, settings: str, reference: Any, source: str = "The saved state") -> Saved:
    """The fields of a state again.

    Arrays that were not NumPy's return to the library and device of `reference`.
    """
    end = data.find(b"\n", 0, _LONGEST_LINE)
    line = data[: max(end, 0)]
    if not line.startswith(_MAGIC) or not line[len(_MAGIC) :].isdigit():
        raise errors.BrokenFile(f"{source} is not a tidewolf state: it does not begin as one.")
    errors.require_format(source, int(line[len(_MAGIC) :]), STATE_FORMAT, "Start a new session.")
    start = end + 1 + _DIGEST
    if hashlib.sha256(memoryview(data)[start:]).digest() != data[start - _DIGEST : start]:
        raise errors.BrokenFile(f"{source} is truncated or was changed: use an earlier copy.")
    try:
        arrays, manifest = _read(data)
        if not values.is_same(manifest["settings"], settings):
            raise errors.OtherSettings(
                f"{source} was written by {manifest['learner']} with other settings. "
                "Make the learner as it was then, or start a new session."
            )
        return Saved(
            {name: _unpack(each, arrays, reference) for name, each in manifest["fields"].items()},
            {str(name): str(each) for name, each in manifest["writer"].items()},
        )
    except errors.CheckpointError:
        raise
    except Exception as error:  # hand-made content breaks its readers in every way
        raise errors.BrokenFile(f"{source} cannot be read: {half_sentence(error)}.") from None


def _read(data: bytes) -> tuple[dict[str, NDArray], dict[str, Any]]:
    return _parted(memoryview(data)[data.index(b"\n") + 1 + _DIGEST :])


def half_sentence(error: Exception) -> str:
    known = isinstance(error, errors.TidewolfError) or type(error) is ValueError
    what = str(error).rstrip(".")
    return what if known and what else f"{type(error).__name__} {what}".strip()


def versions_elsewhere(saved: Mapping[str, str]) -> str:
    """What a state was written with that is not here: "numpy 2.1.0 (here 2.2.0)"; empty if all is
    the same.
    """
    pairs = [(name, saved.get(name, "unknown"), writer()[name]) for name in VERSIONS]
    other = [f"{name} {there} (here {here})" for name, there, here in pairs if there != here]
    return arguments.listed(other, most=len(other))


def packed(value: Any) -> bytes:
    arrays: dict[str, NDArray] = {}
    return _joined(arrays, _pack(value, arrays))


def unpacked(data: bytes, reference: Any) -> Any:
    """The same value again, its arrays in order of their rows; those that were not NumPy's return
    to where `reference` lives.
    """
    arrays, spec = _parted(memoryview(data))
    return _unpack(spec, arrays, reference)


def read(path: Path) -> bytes:
    """All of a regular file; to read from a pipe or a device might never end."""
    words = f"{path} is not a regular file: give the path of a saved state."
    errors.require(not path.exists() or path.is_file(), errors.CheckpointError, words)
    return path.read_bytes()


def write(path: str | os.PathLike[str], data: bytes) -> None:
    """All of `data` at `path`, or nothing."""
    with writing(path) as file:
        file.write(data)


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file whose content is at `path` once it is complete, and not before: written beside it,
    flushed to disk, then put in place.
    """
    target = Path(path)
    beside = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_native_id()}.part")
    try:
        with open(beside, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(target)  # a full disk does not say where it is
        raise
    finally:
        beside.unlink(missing_ok=True)


@cache
def writer() -> dict[str, str]:
    from importlib.metadata import version  # a quarter of the time that importing tidewolf took

    return {
        **{name: version(name) for name in ("tidewolf", "numpy", "scipy", "numba")},
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cpu": _cpu(),
        "blas": _blas(),
        "threads": os.environ.get("OMP_NUM_THREADS") or str(os.cpu_count()),
    }


def _cpu() -> str:
    model = platform.processor() or platform.machine()
    with suppress(OSError):
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
        model = found[1].strip() if found else model
    instructions: Any = np.show_config(mode="dicts")["SIMD Extensions"]
    vectors = (*instructions["baseline"], *instructions.get("found", ()))[-1:]
    kernels = os.environ.get("NUMBA_CPU_NAME", "")
    return " with ".join(part for part in (model, *vectors, kernels) if part)


def _blas() -> str:
    from threadpoolctl import threadpool_info

    found = [each for each in threadpool_info() if each["user_api"] == "blas"]
    found = sorted(found, key=lambda each: "numpy" not in each["filepath"]) or [{}]
    parts = map(found[0].get, ("internal_api", "version", "architecture"))
    return " ".join(str(part) for part in parts if part) or "unknown"


def _pack(value: Any, arrays: dict[str, NDArray]) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        value = SavedRecord(zip(value._fields, value, strict=True))
    if isinstance(value, SavedRecord):
        return {"record": _packed_parts(value, arrays)}
    if isinstance(value, list | tuple):
        return {"list": [_pack(item, arrays) for item in value]}
    if not is_array(value) and isinstance(value, Stored):
        return {"stored": value.tag, "parts": _packed_parts(value.parts(), arrays)}
    if is_array(value):
        name = f"a{len(arrays)}"
        arrays[name] = to_numpy(value)
        return {"array": name, "numpy": type(value) is np.ndarray}
    if sparse.is_sparse(value):
        parts = (value.data, value.indices, value.indptr, np.array(value.shape))
        return {"sparse": [_pack(part, arrays) for part in parts]}
    able = "a state may hold numbers, text, arrays, tuples and stored parts"
    raise errors.NotSupported(f"A {type(value).__name__} cannot be saved: {able}.")


def _packed_parts(parts: Mapping[str, Any], arrays: dict[str, NDArray]) -> dict[str, Any]:
    return {name: _pack(part, arrays) for name, part in parts.items()}


def _unpack(spec: Any, arrays: dict[str, NDArray], reference: Any) -> Any:
    if not isinstance(spec, dict):
        return spec
    if "float" in spec:
        return float.fromhex(spec["float"])
    if "list" in spec:
        return tuple(_unpack(item, arrays, reference) for item in spec["list"])
    if "sparse" in spec:
        return sparse.sparse_of(*(_unpack(part, arrays, reference) for part in spec["sparse"]))
    if "array" in spec:
        array = arrays[spec["array"]]
        if not spec["numpy"]:
            return placed(array, reference)
        array.flags.writeable = False
        return array
    parts = spec["record"] if "record" in spec else spec["parts"]
    read = {name: _unpack(part, arrays, reference) for name, part in parts.items()}
    if "record" in spec:
        return SavedRecord(read)
    kind = Stored._kinds.get(spec["stored"])
    if kind is None:
        raise errors.NewerFormat(f"{spec['stored']!r} is unknown here: install a newer tidewolf.")
    return kind.restored(read)
