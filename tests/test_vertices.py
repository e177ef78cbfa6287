"""Vertices and tables of them: structured arithmetic is dense arithmetic, and a state keeps seeing
what it saw.
"""

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from tidewolf.core import vertices as core
from tidewolf.core.checkpoint import Stored
from tidewolf.core.vertices import Compound, Dense, LowRank, Outer, Sparse

SHAPE = (2, 3)
seeds = st.integers(0, 2**32)


def sparse(rng):
    indices = np.flatnonzero(rng.random(6) < 0.5).astype(np.int32)
    return Sparse(SHAPE, indices, rng.standard_normal(len(indices)))


def dense(rng):
    return Dense(rng.standard_normal(SHAPE))


def moved(rng):
    return Compound((sparse(rng),), 0.5, np.arange(6.0).reshape(SHAPE))


def twice_moved(rng):
    inside = Compound((dense(rng),), 2.0, np.ones(SHAPE))
    return Compound((inside,), 0.25, np.arange(6.0).reshape(SHAPE))


def strict_dense(rng):
    return Dense(strict.asarray(rng.standard_normal(SHAPE)))


KINDS = [sparse, dense, moved, twice_moved, strict_dense]


def reference_of(vertex):
    is_strict = isinstance(vertex, Dense) and type(vertex.point) is not np.ndarray
    return strict.zeros(SHAPE) if is_strict else np.zeros(SHAPE)


def rows_of(vertices):
    return np.stack([np.asarray(vertex.dense(np.zeros(SHAPE))).reshape(-1) for vertex in vertices])


def table_of(vertices):
    table = vertices[0].table()
    for row, vertex in enumerate(vertices):
        table = table.append(vertex, row)
    return table


@pytest.mark.parametrize("make", KINDS)
@given(seed=seeds, kept=st.integers(1, 12), more=st.integers(1, 12))
def test_appending_to_an_old_view_forks_the_table(make, seed, kept, more):
    rng = np.random.default_rng(seed)
    vertices, other = [make(rng) for _ in range(kept + more)], make(rng)
    table = table_of(vertices)
    before, points = table.gram.copy(), rows_of(vertices)
    fork = table.append(other, kept)
    assert fork is not table
    assert (len(table), len(fork)) == (kept + more, kept + 1)
    assert_array_equal(table.gram, before)
    assert_allclose(rows_of(table.vertices), points, atol=0)
    assert_allclose(rows_of(fork.vertices), np.vstack([points[:kept], rows_of([other])]), atol=0)
    d = rng.standard_normal(SHAPE)
    products = table.inner(_like(d, reference_of(other)), kept + more)
    assert_allclose(products, points @ d.reshape(-1), atol=1e-12)


@pytest.mark.parametrize("make", KINDS)
def test_appending_at_the_end_shares_the_table_and_old_views_stay(make):
    rng = np.random.default_rng(0)
    first, second = make(rng), make(rng)
    table = table_of([first])
    assert table.append(second, 1) is table
    assert table.find(second, 1) is None
    assert table.find(second, 2) == 1
    assert table.find(make(rng), 2) is None


@pytest.mark.parametrize("make", KINDS)
def test_find_knows_a_point_made_again_and_gives_its_first_row(make):
    table = table_of([make(np.random.default_rng(seed)) for seed in (1, 2, 1, 3)])
    found = [table.find(make(np.random.default_rng(seed)), 4) for seed in (1, 2, 3, 4)]
    assert found == [0, 1, 3, None]


@pytest.mark.parametrize("make", KINDS)
@given(seed=seeds, count=st.integers(1, 20))
def test_rows_kept_in_order_are_a_table_made_anew_bit_for_bit(make, seed, count):
    rng = np.random.default_rng(seed)
    vertices, more = [make(rng) for _ in range(count)], [make(rng) for _ in range(10)]
    rows = np.flatnonzero(rng.random(count) < 0.5)
    part, anew = table_of(vertices).only(rows), vertices[0].table()
    for row in rows:
        anew = anew.append(vertices[row], len(anew))
    for vertex in more:
        part, anew = part.append(vertex, len(part)), anew.append(vertex, len(anew))
    kept = len(rows) + 10
    assert_array_equal(part.gram[:kept, :kept], anew.gram[:kept, :kept])
    d, reference = rng.standard_normal(SHAPE), reference_of(more[0])
    assert_array_equal(part.inner(_like(d, reference), kept), anew.inner(_like(d, reference), kept))
    for vertex in vertices + more:
        assert part.find(vertex, kept) == anew.find(vertex, kept)


@pytest.mark.parametrize("make", KINDS)
def test_a_vertex_comes_back_from_its_parts(make):
    vertex = make(np.random.default_rng(5))
    again = Stored._kinds[vertex.tag].restored(vertex.parts())
    assert again.key() == vertex.key()
    assert_array_equal(rows_of([again]), rows_of([vertex]))


@pytest.mark.parametrize("kind", [LowRank, Outer])
def test_factors_are_in_memory_as_loaded_ones_are(kind):
    point = np.cov(np.random.default_rng(0).standard_normal((4, 9)))
    assert all(rows.flags.c_contiguous for rows in kind.of(point).factors)


def test_dense_points_are_read_only_and_in_the_reference_dtype():
    for make in KINDS:
        point = make(np.random.default_rng(1)).dense(np.zeros(SHAPE, dtype=np.float32))
        assert point.dtype == np.float32
        assert not point.flags.writeable


def test_a_sparse_vertex_of_a_point_holds_its_nonzeros():
    vertex = Sparse.of(np.array([[0.0, 2.0, 0.0], [-1.0, 0.0, 0.0]], dtype=np.float32))
    assert_array_equal(vertex.indices, [1, 3])
    assert_array_equal(vertex.values, [2.0, -1.0])
    assert Sparse.of(np.zeros(3)).distance2(np.zeros(3), 0.0) == 0.0


@given(seed=seeds, count=st.integers(0, 12))
def test_sparse_kernels_agree_with_their_naive_twins(seed, count):
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((count, 9)) * (rng.random((count, 9)) < 0.4)
    starts = np.concatenate([[0], np.cumsum((matrix != 0).sum(axis=1))]).astype(np.int64)
    indices, values = np.nonzero(matrix)[1].astype(np.int32), matrix[matrix != 0]
    first = int(rng.integers(0, count + 1))
    weights, d = rng.standard_normal(first) * (rng.random(first) < 0.8), rng.standard_normal(9)
    plain = core.sparse_inner.plain, core.sparse_combine.plain
    for inner, combine in ((core.sparse_inner, core.sparse_combine), plain):
        products, point = np.empty(first), np.zeros(9)
        inner(starts, indices, values, d, products)
        combine(starts, indices, values, weights, point)
        assert_allclose(products, matrix[:first] @ d, atol=1e-12)
        assert_allclose(point, weights @ matrix[:first], atol=1e-12)
    for multiply in (core.sparse_multiply, core.sparse_multiply.plain):
        gram = np.zeros((count, count))
        for row in range(count):
            multiply(starts, indices, values, gram, row, np.zeros(9))
        assert_allclose(gram, matrix @ matrix.T, atol=1e-12)


def _like(d, reference):
    return d.copy() if type(reference) is np.ndarray else strict.asarray(d)
