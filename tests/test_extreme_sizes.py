"""A set of any size has the geometry of the same set at size 1, in other units: nothing is squared
before it is scaled.
"""

import warnings

import numpy as np
import pytest

from tidewolf import sets
from tidewolf.core.arrays import to_numpy
from tidewolf.sets.capacitated_flow import FlowNetwork

SIZES = (1e-200, 1e200)
SPECTRAL = (sets.BoundedPSD, sets.Fantope, sets.NuclearBall, sets.Spectraplex)
FIXED = (sets.Birkhoff, sets.Fantope, sets.FlowPolytope, sets.Matching, sets.SpanningTrees)
"""Sets without a size of their own: `Scaled` gives them one."""


def resized(K, factor):
    """factor K, by K's own settings where it has a size."""
    given = K.fields()
    sized = {
        sets.BoundedPSD: ("tau",), sets.Box: ("lower", "upper"),
        sets.CappedSimplex: ("cap", "total"), sets.GroupBall: ("tau",),
        sets.KNormBall: ("tau",), sets.KSparse: ("tau",), sets.Knapsack: ("total", "upper"),
        sets.L1Ball: ("tau",),
        sets.L2Ball: ("radius", "center"), sets.LpBall: ("tau",), sets.NuclearBall: ("tau",),
        sets.OrderedWeightedBall: ("tau",),
        sets.Permutahedron: ("weights",), sets.Polytope: ("b_ub", "b_eq", "bounds"),
        sets.Simplex: ("total",), sets.Spectraplex: ("tau",),
        sets.Transportation: ("rows", "columns"), sets.VertexHull: ("points",),
    }  # fmt: skip
    for kind, names in sized.items():
        if isinstance(K, kind):
            own = {name: factor * given[name] for name in names if given[name] is not None}
            return kind(**given | own)
    if isinstance(K, sets.MultiFlow):
        return sets.MultiFlow(**given | {"demands": tuple(factor * each for each in K.demands)})
    if isinstance(K, sets.CapacitatedFlow):
        net = K.network
        sizes = (factor * each for each in (net.lower, net.upper, net.supply))
        return sets.CapacitatedFlow(FlowNetwork(net.tails, net.heads, *sizes, net.nodes))
    if isinstance(K, sets.Translated):
        return sets.Translated(resized(K.K, factor), factor * K.shift)
    if isinstance(K, sets.Scaled):
        return sets.Scaled(K.K, factor * K.factor)
    if isinstance(K, sets.Shrunk):
        return sets.Shrunk(resized(K.K, factor), K.factor)
    if isinstance(K, sets.Product):
        return sets.Product(*(resized(part, factor) for part in K.parts))
    return sets.Scaled(K, factor)


EVERY = ((kind, i, K) for kind in sets.every() for i, K in enumerate(kind.examples()))
EVERY = [pytest.param(K, id=f"{kind.__name__}-{i}") for kind, i, K in EVERY]


def same_but_for_size(K, small, factor):
    """Every law at once, because making a set and its geometry costs most."""
    rng = np.random.default_rng(0)
    assert small.dimension == K.dimension
    for name in ("radius", "diameter", "inner_radius"):
        one, other = getattr(K, name), getattr(small, name)
        assert (one is None) == (other is None), name
        room = 1e-9 * factor * K.radius
        assert one is None or other == pytest.approx(factor * one, rel=1e-6, abs=room), name
        assert one is None or one <= 1e-9 * K.radius or other > 0.0, name
    center = to_numpy(K.center)
    room = 1e-9 * (K.radius + np.abs(center).max())
    np.testing.assert_allclose(to_numpy(small.center) / factor, center, rtol=1e-6, atol=room)
    near = 1e-6 * (K.radius + float(np.abs(center).max()))
    for _ in range(2):
        d = rng.standard_normal(K.shape)
        best = float(np.sum(d * K.lmo(d)))
        for length in (1.0, *SIZES):
            found = to_numpy(small.lmo(length * d)) / factor
            share = 0.02 if isinstance(K, SPECTRAL) else 0.0
            error = share * K.radius * np.linalg.norm(d) * np.sqrt(d.size)
            assert float(np.sum(d * found)) <= best + error + near * np.abs(d).sum()
            reach = K.radius + np.abs(found).max()
            assert small.infeasibility(factor * found) <= 1e-9 * factor * reach
            t, atol = to_numpy(small.tangent(length * d)) / length, 1e-9 * np.abs(d).max()
            np.testing.assert_allclose(t, to_numpy(K.tangent(d)), rtol=1e-9, atol=atol)
        x = center + 2.0 * (1.0 + K.radius) * d
        far = factor * K.infeasibility(x)
        assert small.infeasibility(factor * x) == pytest.approx(far, rel=1e-6)


@pytest.mark.parametrize("K", EVERY)
def test_geometry_does_not_depend_on_units(K):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for factor in SIZES:
            same_but_for_size(K, resized(K, factor), factor)
            if not isinstance(K, FIXED):
                same_but_for_size(K, sets.Scaled(K, factor), factor)


def test_an_ellipsoid_of_extreme_size_has_its_semiaxes():
    for factor in (1e-150, 1e150):
        for A in (np.array([1.0, 0.01, 25.0]), np.array([[2.0, 1.0], [1.0, 3.0]])):
            same_but_for_size(sets.Ellipsoid(A), sets.Ellipsoid(A / factor / factor), factor)
