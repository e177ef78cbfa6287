"""Files that unpack to gigabytes, headers that claim terabytes, states of another hand: one
sentence, 256 MB above the file at most.

Each file is read in a process of its own, which tells how far its memory rose while the file was
refused.
"""

import contextlib
import gzip
import hashlib
import io
import json
import os
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tidewolf as tw
from interpreter import python
from killed import LEARNERS
from tidewolf.core.errors import BrokenFile, InvalidInput, NewerFormat
from tidewolf.evaluation.recording import Recording
from tidewolf.files import reading

MEGABYTE = 1 << 20
LIMIT = 256 * MEGABYTE
READER = """
import resource, sys
import numpy as np
import tidewolf as tw
from killed import LEARNERS
from tidewolf.core.errors import TidewolfError
from tidewolf.problems import read_graph, read_table
import pyarrow.parquet, networkx, openpyxl

learner = LEARNERS["LyapunovDescent"]
learner.load(learner.save(learner.start()))
readers = {
    "table": read_table,
    "graph": read_graph,
    "state": lambda path: tw.Session.load(path, learner),
}

def peak():
    peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    return int(peak.split()[1]) * 1024

for kind, path in zip(sys.argv[1::2], sys.argv[2::2]):
    open("/proc/self/clear_refs", "w").write("5")  # the peak is counted from here
    before = peak()
    try:
        readers[kind](path)
        said = "nothing"
    except TidewolfError as error:
        said = str(error)
    print(max(0, peak() - before), said.count(chr(10)), said.replace(chr(10), " "), sep="|")
"""


def refused(*files):
    """How far memory rose while each file was refused, and the sentence."""
    said = python("-c", READER, *(word for pair in files for word in pair))
    lines = [line.split("|", 2) for line in said.splitlines()]
    assert [lines_in for _, lines_in, _ in lines] == ["0"] * len(files)
    return [(int(bytes_), said) for bytes_, _, said in lines]


# --- what bombs are made of -----------------------------------------------------------------------


def npy_header(shape, dtype="<f8"):
    buffer = io.BytesIO()
    head = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_2_0(buffer, head)
    return buffer.getvalue()


def zipped(entries, method=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        for name, data in entries.items():
            file.writestr(name, data)
    return buffer.getvalue()


def zip_of_zeros(name, head, chunks):
    """An archive with one entry: a head and so many times 16 MB of zeros."""
    buffer = io.BytesIO()
    packed = {"mode": "w", "compression": zipfile.ZIP_DEFLATED, "compresslevel": 1}
    with zipfile.ZipFile(buffer, **packed) as file, file.open(name, "w") as entry:
        entry.write(head)
        for _ in range(chunks):
            entry.write(bytes(16 * MEGABYTE))
    return buffer.getvalue()


def packed_again(path, start, chunk, times):
    """Packed once and repeated: a gzip file may have several parts."""
    path.write_bytes(gzip.compress(start) + gzip.compress(chunk) * times)
    return path


def sealed(body):
    """A state with a right checksum."""
    return b"tidewolf state 3\n" + hashlib.sha256(body).digest() + body


def lying_size(data, size):
    """An archive whose central directory claims another unpacked size of its first entry."""
    at = data.index(b"PK\x01\x02") + 24
    return data[:at] + struct.pack("<I", size) + data[at + 4 :]


@pytest.fixture(scope="module")
def bombs(tmp_path_factory):
    import pyarrow
    from pyarrow import parquet

    from test_files import row, with_rows

    here, files = tmp_path_factory.mktemp("bombs"), dict[str, tuple[str, Path]]()

    def state(name, body):
        (here / name).write_bytes(sealed(body))
        files[name] = "state", here / name

    def table(name, data=None):
        if data is not None:
            (here / name).write_bytes(data)
        files[name] = "table", here / name
        return here / name

    chunks = 18  # of 16 MB: more than any file may take
    table("zeros.npz", zip_of_zeros("values.npy", npy_header((chunks << 21, 1)), chunks))
    packed_again(table("rows.csv.gz"), b"a,b\n", b"1,2\n" * MEGABYTE, 4 * chunks)
    packed_again(table("line.csv.gz"), b"a,b\n", b"1" * (4 * MEGABYTE), 4 * chunks)
    packed_again(table("short.csv.gz"), b"a,b\n", b"1" * (4 * MEGABYTE), 12)
    many = packed_again(here / "graph.csv.gz", b"tail,head\n", b"a,b\n" * MEGABYTE, 4 * chunks)
    files["graph.csv.gz"] = "graph", many
    runs = pyarrow.table({"a": np.zeros(1 << 20)})
    with parquet.ParquetWriter(table("runs.parquet"), runs.schema) as writer:
        for _ in range(48):
            writer.write_table(runs)
    places, values = np.zeros(4096, dtype=np.int32), ["x" * MEGABYTE]
    text = pyarrow.DictionaryArray.from_arrays(pyarrow.array(places), pyarrow.array(values))
    for name, kept in (("texts.parquet", True), ("plain texts.parquet", False)):
        texts = pyarrow.table({"time": text, "a": np.zeros(4096)})
        parquet.write_table(texts, table(name), store_schema=kept)
    table("zeros.xlsx", zip_of_zeros("xl/worksheets/sheet1.xml", b"<worksheet>", chunks))
    wide = b"".join(row(i, **{f"A{i}": 1, f"XFD{i}": 2}) for i in range(1, 5001))
    with_rows(table("far apart.xlsx"), wide)
    table("claims.npz", zipped({"values.npy": npy_header((10**12, 10)) + bytes(80)}))
    table("item.npz", zipped({"values.npy": npy_header((1, 1), "<U2000000000") + bytes(80)}))
    table("overflow.npz", zipped({"values.npy": npy_header((2**32, 2**32)) + bytes(80)}))
    table("negative.npz", zipped({"values.npy": npy_header((-1, 1)) + bytes(80)}))
    small = zipped({"values.npy": npy_header((10**8, 4)) + bytes(80)})
    table("lies.npz", lying_size(small, 3_200_000_080 + 128))
    table("lzma.npz", zipped({"values.npy": npy_header((4, 4)) + bytes(128)}, zipfile.ZIP_LZMA))
    whole = b'{"settings": "", "learner": "", "writer": {}, "fields": {}}'
    for name, kind in (("claims", b'["|u1", [10000000000000]]'), ("object", b'["|O", [2]]')):
        state(f"{name}.state", b"[" + whole + b", [" + kind + b"]]\n" + bytes(80))
    state("negative.state", b"[" + whole + b', [["<f8", [-1]]]]\n' + bytes(80))
    state("beyond.state", b"[" + whole + b", []]\n" + bytes(80))
    fields = b"{}," * (12 * MEGABYTE)
    state("manifest.state", b"[" + whole.replace(b"{}}", b"[" + fields + b"{}]}") + b", []]\n")
    state("deep.state", b"[" * (4 * MEGABYTE) + b"\n")
    (here / "nothing.state").write_bytes(b"tidewolf state 3\n")
    os.truncate(here / "nothing.state", 300 * MEGABYTE)
    files["nothing.state"] = "state", here / "nothing.state"
    laughs = "".join(f'<!ENTITY a{i + 1} "{f"&a{i};" * 10}">' for i in range(9))
    graphml = (
        f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a0 "ha">{laughs}]><graphml><graph '
        'id="&a9;"/></graphml>'
    )
    (here / "laughs.graphml").write_text(graphml)
    files["laughs.graphml"] = "graph", here / "laughs.graphml"
    return files


def test_no_bomb_takes_more_than_it_may(bombs):
    found = zip(bombs.items(), refused(*bombs.values()), strict=True)
    for (name, (_, path)), (rose, said) in found:
        assert rose <= path.stat().st_size + LIMIT, f"{name} took {rose >> 20} MB: {said}"
        assert path.name in said, f"{name}: {said}"
        assert said.endswith("."), f"{name}: {said}"
        assert "is truncated or was changed" not in said or name == "nothing.state"


def test_what_packs_well_and_is_small_is_read(tmp_path):
    np.savez_compressed(tmp_path / "t.npz", values=np.zeros((10_000, 5)))
    packed_again(tmp_path / "t.csv.gz", b"a,b\n", b"1,2\n" * 1000, 5)
    assert tw.problems.read_table(tmp_path / "t.npz").values.shape == (10_000, 5)
    assert tw.problems.read_table(tmp_path / "t.csv.gz").values.shape == (5000, 2)


def test_a_larger_file_may_unpack_to_more():
    assert reading.most_unpacked(10) == reading.ALWAYS_UNPACKED
    assert reading.most_unpacked(reading.ALWAYS_UNPACKED) == reading.RATIO * reading.ALWAYS_UNPACKED


@pytest.mark.parametrize("name", ["t.gml", "t.graphml"])
def test_a_graph_of_too_much_text_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.setattr("tidewolf.files.table.LARGEST_TEXT", 1 << 20)
    (tmp_path / name).write_bytes(b" " * (2 << 20))
    most = r"has 2 MB; GraphML and GML are read up to 1 MB, edge lists in CSV of any size\."
    with pytest.raises(InvalidInput, match=most):
        tw.problems.read_graph(tmp_path / name)


# --- states of another hand -----------------------------------------------------------------------

SPARSE = LEARNERS["LyapunovDescent"]
LOW_RANK = tw.LyapunovDescent(tw.sets.Spectraplex(3), horizon=40)
DENSE = tw.LyapunovDescent(tw.sets.L2Ball(3), horizon=40)
BLOCK = tw.LyapunovDescent(tw.sets.Simplex(4), horizon=40, block=5)
JOINED = tw.PrimalDual(tw.sets.Product(tw.sets.BoundedPSD(2, 1.0), tw.sets.Simplex(3)), horizon=40)
OPEN = LEARNERS["DriftPlusPenalty"]


def saved(learner, rounds=9):
    session, rng, shape = tw.Session(learner), np.random.default_rng(0), learner.K.shape
    for _ in range(rounds):
        limits = tw.functions.Capacity.one(learner.K.center + rng.uniform(0.0, 0.2, shape))
        session.observe(loss=tw.functions.Linear.one(rng.standard_normal(shape)), constraint=limits)
    return learner.save(session.state)


def forged(data, change):
    """The state after another hand, with a right checksum: `change` is given the fields and the
    arrays.
    """
    manifest, arrays = opened(data)
    change(manifest["fields"], arrays)
    return closed(manifest, arrays)


def opened(data):
    """What a state's first line says, and its arrays."""
    line, _, rest = data.partition(b"\n")[2][32:].partition(b"\n")
    (manifest, kinds), arrays = json.loads(line), dict[str, Any]()
    for i, (dtype, shape) in enumerate(kinds):
        array = np.frombuffer(rest, dtype, int(np.prod(shape))).reshape(shape)
        arrays[f"a{i}"], rest = array.copy(), rest[array.nbytes :]
    return manifest, arrays


def closed(manifest, arrays):
    """The reverse; arrays of any name."""
    kinds = [(array.dtype.str, array.shape) for array in arrays.values()]
    line = json.dumps([manifest, kinds], separators=(",", ":"))
    for i, name in enumerate(arrays):
        line = line.replace(f'"array":"{name}"', f'"array":"a{i}"')
    return sealed(line.encode() + b"\n" + b"".join(array.tobytes() for array in arrays.values()))


def home(fields, name):
    """The record that has a field of this name, at whatever depth; the outermost where none has."""
    inside = [one["record"] for one in fields.values() if isinstance(one, dict) and "record" in one]
    found = (one for record in inside if name in (one := home(record, name)))
    return fields if name in fields else next(found, fields)


def field(name, value):
    def change(fields, arrays):
        home(fields, name)[name] = value

    change.__name__ = f"{name}={value!r}"[:40]
    return change


def at(*path, put):
    """What stands where this path of the manifest leads, changed: an array, or a part."""

    def change(fields, arrays):
        place = home(fields, path[0])
        for key in path[:-1]:
            place = place[key]
        part = place[path[-1]]
        if isinstance(part, dict) and "array" in part:
            arrays[part["array"]] = put(arrays[part["array"]])
        else:
            place[path[-1]] = put(part)

    change.__name__ = f"{path[0]} {path[-1]}"
    return change


def entry(index, value):
    def put(numbers):
        numbers.reshape(-1)[index] = value
        return numbers

    return put


def shorter(vertices):
    return vertices[:-1]


ACTIVE = ("pool", "parts", "first")
VERTICES = (*ACTIVE, "parts", "vertices", "list")
FIRST, LAST = ((*VERTICES, i, "parts") for i in (0, -1))
WEIGHTS, PIECE = (*ACTIVE, "parts", "weights"), ("limits", "parts", "pieces", "list", 0, "list")
ROWS, Y = (*PIECE, 1, "list", 0), ("descents", "list", 0, "record", "y")
FORGERIES = [
    (SPARSE, field("distance", {"float": "nan"})),
    (SPARSE, field("pool", {"stored": "active set", "parts": {}})),
    (SPARSE, field("more", 1)),
    (SPARSE, lambda fields, _: home(fields, "t").pop("t")),
    (SPARSE, at("dual", "record", put=lambda record: record | {"more": 1})),
    (BLOCK, at("open", "record", put=lambda record: record | {"rounds": 10**9})),
    (SPARSE, at(*Y, put=entry(0, np.nan))),
    (SPARSE, at(*Y, put=lambda y: np.zeros(len(y) + 1))),
    (SPARSE, at(*Y, put=lambda y: y.astype(np.int64))),
    (SPARSE, at(*WEIGHTS, put=lambda w: w[1:])),
    (SPARSE, at(*WEIGHTS, put=entry(0, np.nan))),
    (SPARSE, at(*ACTIVE, "parts", "x", put=lambda x: 2.0 * x)),
    (SPARSE, at(*FIRST, "indices", put=entry(0, 2_000_000_000))),
    (SPARSE, at(*FIRST, "indices", put=entry(0, -1))),
    (SPARSE, at(*FIRST, "values", put=entry(0, np.nan))),
    (SPARSE, at(*FIRST, "shape", put=lambda shape: {"list": [10**12]})),
    (SPARSE, at(*VERTICES, put=lambda vertices: [])),
    (LOW_RANK, at(*LAST, "rows", put=lambda rows: rows * np.nan)),
    (DENSE, at(*LAST, "point", put=lambda v: v[1:])),
    (JOINED, at("active", *VERTICES[3:], -1, "parts", "vertices", "list", put=shorter)),
    (OPEN, at(*PIECE, 0, put=lambda kind: "Custom")),
    (OPEN, at(*ROWS, put=lambda c: c[:, :3])),
    (OPEN, at(*ROWS, put=lambda c: np.nan * c)),
]


@pytest.fixture(scope="module")
def states():
    every = (SPARSE, LOW_RANK, DENSE, JOINED, OPEN, BLOCK)
    return {id(learner): saved(learner) for learner in every}


KINDS = [getattr(change, "__name__", type(learner).__name__) for learner, change in FORGERIES]


@pytest.mark.parametrize(("learner", "change"), FORGERIES, ids=KINDS)
def test_a_hand_made_state_with_a_right_checksum_is_refused(learner, change, states, tmp_path):
    (tmp_path / "state").write_bytes(forged(states[id(learner)], change))
    with pytest.raises((BrokenFile, NewerFormat)) as said:
        tw.Session.load(tmp_path / "state", learner)
    assert str(said.value).count("\n") == 0
    assert str(said.value).endswith(".")


WRONG = [None, -1, True, "x", {}, {"float": "no"}, {"float": 1}, {"list": [1]}]
WRONG += [{"record": {"x": 1}}, {"record": [1]}, {"array": "a999"}, {"stored": ["x"], "parts": {}}]


def parts(fields):
    """Every mapping or list of a manifest, and each of its keys."""
    for key in [*fields] if isinstance(fields, dict) else range(len(fields)):
        yield fields, key
        if isinstance(fields[key], dict | list):
            yield from parts(fields[key])


@pytest.mark.parametrize("learner", [SPARSE, LOW_RANK, DENSE, JOINED, OPEN], ids=repr)
def test_a_state_packed_again_goes_on_and_no_change_of_it_is_more_than_a_refusal(learner, states):
    data, found = states[id(learner)], list[int]()
    assert learner.save(learner.load(forged(data, lambda fields, _: None))) == data
    forged(data, lambda fields, _: found.append(len([*parts(fields)])))
    for number in range(0, found[0] * len(WRONG), 83):
        which, value = divmod(number, len(WRONG))

        def change(fields, _, which=which, value=value):
            place, key = [*parts(fields)][which]
            place[key] = WRONG[value]

        with contextlib.suppress(BrokenFile, NewerFormat):
            learner.save(learner.load(forged(data, change)))


@pytest.mark.parametrize("writer", [None, [], {"numpy": {"a": 1}}, 5])
def test_a_writer_of_another_hand_is_refused_or_told(writer):
    manifest, arrays = opened(SPARSE.save(SPARSE.start()))
    with pytest.raises((BrokenFile, tw.core.errors.OtherVersions)):
        SPARSE.load(closed(manifest | {"writer": writer}, arrays))


# --- recordings of another hand -------------------------------------------------------------------


@pytest.fixture(scope="module")
def recorded():
    problem = tw.problems.adversarial(rounds=20)
    learner = tw.LyapunovDescent(problem.K, horizon=20)
    recording = Recording(learner, problem.stream)
    for t in recording.advance():
        if t == 12:
            break
    return recording.save(), learner, problem.stream


@pytest.mark.parametrize(
    "change",
    [
        field("t", 10**9),
        field("t", -1),
        field("t", "x"),
        field("trackers", None),
        field("state", None),
        at("state", put=lambda state: state[:-1]),
        at("rounds", "list", 0, put=lambda losses: losses[:-1]),
        at("rounds", "list", 0, put=entry(0, np.nan)),
        at("rounds", "list", -1, put=lambda numbers: numbers.astype(np.float32)),
        at("trackers", "list", put=lambda trackers: trackers[:-1]),
    ],
    ids=lambda change: change.__name__,
)
def test_a_hand_made_recording_is_refused(change, recorded):
    data, learner, stream = recorded
    with pytest.raises(BrokenFile, match=r"^the file"):
        Recording.load(forged(data, change), learner, stream, "the file")


def test_a_recording_packed_again_as_it_was_goes_on(recorded):
    data, learner, stream = recorded
    same = forged(data, lambda fields, arrays: None)
    assert Recording.load(same, learner, stream, "the file").save() == data
