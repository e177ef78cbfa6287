"""A learner on the strictest array library: nothing beyond the array API standard is asked of
points.
"""

from __future__ import annotations

import array_api_strict as strict
import numpy as np

import tidewolf as tw
from covering import covered
from streams import streams
from tidewolf.sets import Box, CappedSimplex, FlowPolytope, L2Ball, Simplex, Translated, VertexHull

SETS = {
    "box": Box([-1.0, 0.0, 2.0, 0.0], [1.0, 5.0, 2.0, 0.5]),
    "ball": L2Ball(4, radius=2.0),
    "hull": VertexHull(np.random.default_rng(0).standard_normal((7, 4))),
    "simplex": Simplex(4),
    "capped": CappedSimplex(4, 0.5),
    "moved": Translated(Box(np.zeros(4), np.ones(4)), np.ones(4)),
    "flow": FlowPolytope.from_edges(
        [("s", "a"), ("s", "a"), ("a", "t"), ("s", "t")], source="s", target="t"
    ),
}


@covered(
    K=SETS,
    kind={kind: kind for kind in streams(1, 4, np.asarray)},
    dtype={"float64": strict.float64, "float32": strict.float32},
    block={"1": 1, "7": 7},
)
def test_a_learner_runs_on_strict_arrays(K, kind, dtype, block):
    moved = K.to(strict.zeros(1, dtype=dtype))
    learner = tw.LyapunovDescent(moved, horizon=40, block=block)
    ours = tw.run(learner, streams(40, 4, lambda x: strict.asarray(x, dtype=dtype))[kind])
    state = ours.final_state
    for part in (learner.act(state), state.point.y):
        assert type(part) is type(moved.center)
        assert part.dtype == dtype
    assert ours.max_infeasibility <= (1e-9 if dtype == strict.float64 else 1e-4)
    # a Box has a step for each coordinate in NumPy
    if dtype == strict.float64 and isinstance(K, L2Ball | VertexHull):
        numpys = tw.run(
            tw.LyapunovDescent(K, horizon=40, block=block), streams(40, 4, np.asarray)[kind]
        )
        np.testing.assert_allclose(ours.losses, numpys.losses, atol=1e-12)
        np.testing.assert_array_equal(ours.calls, numpys.calls)
    assert ours.regret is None or ours.regret[0] <= ours.bound.regret + 1e-6


def test_a_saved_state_returns_to_its_library_and_goes_on():
    K, stream = (
        SETS["hull"].to(strict.zeros(1)),
        streams(40, 4, strict.asarray)["affine under maxima"],
    )
    learner = tw.LyapunovDescent(K, horizon=40)
    *_, half = tw.play(learner, stream[:20])
    again = learner.load(learner.save(half.state))
    assert type(again.point.y) is type(K.center)
    for whole, resumed in zip(
        tw.play(learner, stream[20:], half.state), tw.play(learner, stream[20:], again), strict=True
    ):
        np.testing.assert_array_equal(np.asarray(whole.x), np.asarray(resumed.x))
