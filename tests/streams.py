"""Short streams in the arrays of any library."""

import numpy as np

import tidewolf as tw
from tidewolf.core.feedback import FirstOrder
from tidewolf.evaluation.recording import Recording
from tidewolf.functions import Affine, Capacity, Linear, MaxAffine, Quadratic


def streams(rounds, n, made):
    """One stream of each kind on points of n entries; `made` puts an array where it belongs."""
    rng = np.random.default_rng(1)
    C, A = rng.random((rounds, n)), rng.standard_normal((rounds, n))
    affine = Affine(made(A), made(np.full(rounds, 0.1)))
    maxima = MaxAffine(made(rng.standard_normal((rounds, 3, n))), made(np.full((rounds, 3), 0.5)))
    return {
        "linear under capacities": tw.Stream(Linear(made(C)), Capacity(made(0.2 + 0.3 * C))),
        "affine under maxima": tw.Stream(affine, maxima),
        "quadratic under affine": tw.Stream(Quadratic(made(np.eye(n)), made(C)), affine),
    }


def together(rounds):
    """The feedback on several rounds from that on each, added in their order."""
    total = rounds[0]
    for seen in rounds[1:]:
        total = FirstOrder(
            total.loss_gradient + seen.loss_gradient,
            total.violation + seen.violation,
            total.constraint_gradient + seen.constraint_gradient,
            max(total.loss_slope, seen.loss_slope),
            max(total.constraint_slope, seen.constraint_slope),
            total.rounds + seen.rounds,
        )
    return total


def hostile(kind, K, rounds, seed):
    """A stream on which some point of K keeps every constraint, unless it is hopeless."""
    rng = np.random.default_rng([seed, len(kind)])
    column, flat = (rounds, *[1] * len(K.shape)), (rounds, -1)
    star = 0.7 * K.center + 0.3 * K.lmo(rng.standard_normal(K.shape))
    turns = np.where(np.arange(rounds) // max(2, rounds // 7) % 2, -1.0, 1.0).reshape(column)
    C = turns * rng.standard_normal(K.shape) + 0.3 * rng.standard_normal((rounds, *K.shape))
    A, size = -C + 0.2 * rng.standard_normal(C.shape), np.ones(rounds)
    if kind == "random signs":
        C, A = rng.choice([-1.0, 1.0], C.shape), rng.choice([-1.0, 1.0], C.shape)
    elif kind == "rare and huge":
        size = np.where(rng.random(rounds) < 0.05, 1e3, 1e-2)
    elif kind == "steady":
        C = A = rng.standard_normal(K.shape) + 0.0 * C
    elif kind == "losses that grow":
        C = C * np.logspace(-3, 3, rounds).reshape(column)
    elif kind == "capacities":
        losses = Linear(-rng.random(C.shape))
        return tw.Stream(losses, Capacity(star + K.radius * 0.1 * rng.random(C.shape)))
    else:
        assert kind in ("switching", "hopeless")
    A = A * size.reshape(column)
    most = np.linalg.norm(A.reshape(flat), axis=1) * K.radius if kind == "hopeless" else 0.0
    return tw.Stream(Linear(C), Affine(A, A.reshape(flat) @ star.reshape(-1) - most))


def require_equal(f, g, points, tolerance=1e-10):
    """Everything a batch answers, also where a round has no weight."""
    weights = np.arange(1.0, len(g) + 1) * (np.arange(len(g)) != 1)
    asked = [("values_at", np.stack([points[t % len(points)] for t in range(len(g))]))]
    for x in points:
        asked += [("values", x), ("gradients", x), ("slopes", x), ("subgradient", x, weights)]
    for name, *given in asked:
        ours, theirs = (getattr(batch, name)(*given) for batch in (f, g))
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance, err_msg=name)


def recorded(learner, stream, cuts=(), **options):
    """A whole run; at these rounds it is saved, and goes on from that."""
    recording = Recording(learner, stream, **options)
    for cut in (*cuts, len(stream)):
        for t in recording.advance():
            if t >= cut:
                break
        if not recording.done:
            recording = Recording.load(recording.save(), learner, stream, "it")
    return recording
