"""The geometry of a box, as kernels/rounds.py asks for it: `floats` are the lower bounds, then the
upper ones. Reference implementations in the tests are the methods of `Box`.
"""

from tidewolf.core.jit import kernel


@kernel
def within_box(d, count, floats, ints, out):  # type: ignore[no-untyped-def]
    """The first `count` rows of d, 0 where both bounds are the same: `Box.tangent`."""
    n = d.shape[1]
    for row in range(count):
        for e in range(n):
            out[row, e] = d[row, e] if floats[n + e] > floats[e] else 0.0


@kernel
def outside_box(x, floats, ints):  # type: ignore[no-untyped-def]
    """By how much x is outside at most: `Box.infeasibility`."""
    n, worst = len(x), 0.0
    for e in range(n):
        off = max(floats[e] - x[e], x[e] - floats[n + e])
        worst = off if off > worst else worst
    return worst


@kernel
def nearest_in_box(y, floats, ints, x):  # type: ignore[no-untyped-def]
    """The nearest x of the box: `Box.project`."""
    n = len(x)
    for e in range(n):
        most = y[e] if y[e] < floats[n + e] else floats[n + e]
        x[e] = most if most > floats[e] else floats[e]
