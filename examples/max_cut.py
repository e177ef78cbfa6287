"""
Online max-cut: two radio channels
==================================

A wireless operator has two channels and a graph of interference between access points. Two points
on the same channel disturb each other, two on different ones do not, so the channels are a *cut*
of the graph, and a good one has much weight between its sides. How heavy an edge is depends on who
works where, and is measured only afterwards.

Time-varying: the weights of the edges. Hard constraints: the matrix that is played is positive
semidefinite with trace :math:`n`, so that it can always be rounded to a cut. Soft constraints: no
entry of its diagonal should exceed 1.
"""

import matplotlib.pyplot as plt
import numpy as np

import tidewolf as tw

ROUNDS = 600  # 40 in the tests
POINTS = 16  # 8 in the tests
DAY = 200  # 20 in the tests
BLUE, ORANGE, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
rng = np.random.default_rng(0)

# %%
# The building
# ------------
# Points that are near each other disturb each other. By day the offices in the west are busy, at
# night the flats in the east. After two thirds of the rounds a tenant moves: the load of every
# point is dealt anew. On top of that every measurement is noisy, by a factor with mean 1 that is
# often near 0 and sometimes 3 or more.

columns = np.arange(POINTS) // 2
where = np.stack([60.0 * (columns + 0.5) / (POINTS // 2), 10.0 + 12.0 * (np.arange(POINTS) % 2)], 1)
where += rng.uniform(-3.0, 3.0, where.shape)  # metres
distance = np.linalg.norm(where[:, None] - where[None], axis=2)
i, j = np.triu_indices(POINTS, 1)
kept = np.argsort(distance[i, j])[: 3 * POINTS]  # the nearest pairs
i, j = i[kept], j[kept]
t = np.arange(ROUNDS)[:, None]
night = 0.5 + 0.5 * np.sin(2 * np.pi * t / DAY)
east = where[:, 0] / 60.0
before, after = rng.uniform(0.2, 1.8, (2, POINTS))
load = ((1 - night) * (1 - east) + night * east) * np.where(t < 2 * ROUNDS // 3, before, after)
weights = load[:, i] * load[:, j] * np.exp(-distance[i, j] / 10.0)
weights = weights * rng.exponential(1.0, weights.shape)
weights /= weights.sum(axis=1).mean()  # 1: all disturbance of a mean round
print(f"{POINTS} points, {len(i)} pairs that disturb each other, {ROUNDS} rounds")


# %%
# The relaxation
# --------------
# A cut is a vector :math:`s \in \{-1, 1\}^n`, and the weight between its sides is
# :math:`\tfrac14 s^\top L_t s` with the graph's Laplacian :math:`L_t`. Goemans and Williamson
# replace :math:`s s^\top` by a positive semidefinite :math:`X` with ones on its diagonal:
#
# .. math:: f_t(X) = -\tfrac14 \langle L_t, X \rangle, \qquad
#           g_t(X) = \max_k X_{kk} - 1, \qquad X \succeq 0,\ \operatorname{tr} X = n .
#
# With the trace at :math:`n`, the limit asks for a diagonal of ones. It is a soft limit because the
# set alone has an oracle that is one eigenvector; with the diagonal in it, every call would be a
# semidefinite program.


def laplacians(weights):
    L = np.zeros((len(weights), POINTS, POINTS))
    L[:, i, j] = L[:, j, i] = -weights
    L[:, range(POINTS), range(POINTS)] = -L.sum(axis=2)
    return L


K = tw.sets.Spectraplex(POINTS, tau=POINTS)
diagonal = np.tile(np.arange(POINTS) * (POINTS + 1), (ROUNDS, 1))  # places in the flat matrix
losses = tw.functions.Linear(-laplacians(weights) / 4)
limits = tw.functions.Range(
    np.zeros(diagonal.shape), np.ones(diagonal.shape), diagonal, (POINTS, POINTS)
)

# %%
# Baselines
# ---------
# Average what was measured, and solve the relaxation for the average. For a small graph that is
# cheap: write :math:`X = V V^\top` and set one row of :math:`V` after the other against the pull of
# its neighbours. The question is how long to remember. One round is mostly noise, a hundred are half
# a day ago, and no one knows beforehand which is better.


def resolved(memory):
    """A matrix for every round, from the rounds before it alone."""
    own = np.random.default_rng(1)
    V = own.standard_normal((POINTS, 8))
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    mean, found = np.zeros((POINTS, POINTS)), np.empty((ROUNDS, POINTS, POINTS))
    for t, seen in enumerate(weights):
        found[t] = V @ V.T
        mean *= 1 - 1 / memory
        mean[i, j] += seen / memory
        mean[j, i] += seen / memory
        for _ in range(5):
            for k in range(POINTS):
                pull = mean[k] @ V
                size = np.linalg.norm(pull)
                V[k] = -pull / size if size > 0 else V[k]
    return found


memories = {"1 round": 1, "10 rounds": 10, "100 rounds": 100}
advice = {name: resolved(memory) for name, memory in memories.items()}

# %%
# Play
# ----
# Once alone, once alone with less caution, and once with the three re-solvers as advice, by name.

alone = tw.run(tw.Ensemble(K), tw.Stream(losses, limits), decisions=True)
bold = tw.run(tw.Ensemble(K, caution=1.0), tw.Stream(losses, limits), decisions=True)
run = tw.run(
    tw.Ensemble(K, experts=list(advice)), tw.Stream(losses, limits, advice=advice), decisions=True
)
assert alone.certificate.holds
assert bold.certificate.holds
assert run.certificate.holds
print(run.experts)

# %%
# *Lost at most* is the guard inequality: what the run can have lost to each member in all, a broken
# diagonal counted at the price that the run puts on it. The unit is all disturbance of a mean round.
#
# Round to real cuts
# ------------------
# A random hyperplane through the origin puts every row of :math:`V` on one side or the other. We
# report the mean over thirty of them, which is what one hyperplane a round gives on average. The
# best fixed cut is found by trying all of them.


def left(matrices, hyperplanes=30):
    """What still disturbs, round by round: the weight inside the two sides, over all weight."""
    own = np.random.default_rng(2)
    share = np.empty(ROUNDS)
    for t, X in enumerate(matrices):
        values, vectors = np.linalg.eigh(X)
        V = vectors * np.sqrt(np.maximum(values, 0.0))
        sides = V @ own.standard_normal((POINTS, hyperplanes)) > 0
        share[t] = (weights[t] @ (sides[i] == sides[j])).mean() / weights[t].sum()
    return share


every = (np.arange(2 ** (POINTS - 1))[:, None] >> np.arange(POINTS)) & 1  # the last is on side 0
inside = (every[:, i] == every[:, j]) @ (weights / weights.sum(axis=1, keepdims=True)).mean(axis=0)

shares = {
    "a coin for every point": np.full(ROUNDS, 0.5),
    **{f"re-solving, memory {name}": left(points) for name, points in advice.items()},
    "Ensemble alone": left(alone.decisions.points),
    "Ensemble alone, caution 1": left(bold.decisions.points),
    "Ensemble with the three as advice": left(run.decisions.points),
    "best fixed cut in hindsight": np.full(ROUNDS, inside.min()),
}
for name, share in shares.items():
    print(f"{name:35s} {100 * share.mean():5.1f} % of the disturbance is left")

# %%
# With advice the run ends up beside the best of the three without being told which that is. Alone,
# it loses to all of them. With one gradient and one eigenvector a round a matrix of this size moves
# slowly, and the default caution of 10 spends most of that on the diagonal; with a caution of 1 the
# diagonal is broken freely, which rounding hardly minds. A solver for a graph of sixteen points
# costs next to nothing: where you have one, hand it over as advice. (All of this is the same for
# the seeds 0, 1 and 2.)

colours = (ORANGE, PINK, GREEN, BLUE)
shown = ("re-solving, memory 1 round", "re-solving, memory 100 rounds")
shown = (*shown, "Ensemble alone, caution 1", "Ensemble with the three as advice")
window = np.ones(ROUNDS // 10) / (ROUNDS // 10)
fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
for name, colour, width in zip(shown, colours, (1.5, 4.0, 1.5, 1.5), strict=True):
    smooth = np.convolve(100 * shares[name], window, "valid")
    ax.plot(np.arange(len(smooth)) + len(window), smooth, color=colour, lw=width, label=name)
ax.axhline(100 * inside.min(), color="black", linestyle=":", label="best fixed cut in hindsight")
ax.axvline(2 * ROUNDS // 3, color="0.7", zorder=0, label="a tenant moves")
ax.set(xlabel="round", ylabel=f"disturbance left [%], mean of {len(window)} rounds")
ax.set_title("With advice the run follows the better re-solver; alone it is slow")
fig.legend(fontsize="small", loc="outside lower center", ncols=3)

# %%
# What the channels look like by day and at night: of thirty hyperplanes the one that was best for
# the last measurements. Lines are pairs that disturb each other, the thicker the more; the dark
# ones have both ends on the same channel.

evening = np.flatnonzero(night[:, 0] >= night.max() - 1e-9)[-1]
morning = np.flatnonzero(night[:, 0] <= night.min() + 1e-9)[-1]
fig, axes = plt.subplots(2, 1, figsize=(8, 4.5), layout="constrained", sharex=True)
for ax, moment, name in zip(axes, (morning, evening), ("day", "night"), strict=True):
    values, vectors = np.linalg.eigh(run.decisions.points[moment])
    V = vectors * np.sqrt(np.maximum(values, 0.0))
    sides = V @ np.random.default_rng(3).standard_normal((POINTS, 30)) > 0
    usual = weights[max(0, moment - DAY // 10) : moment].mean(axis=0)
    side = sides[:, np.argmin(usual @ (sides[i] == sides[j]))]
    for a, b, weight in zip(i, j, usual / usual.max(), strict=True):
        same = side[a] == side[b]
        ax.plot(*where[[a, b]].T, color="0.2" if same else "0.8", linewidth=0.5 + 5 * weight)
    for channel, colour in ((0, BLUE), (1, ORANGE)):
        points = where[side == channel].T
        ax.scatter(*points, color=colour, s=90, zorder=3, label=f"channel {channel + 1}")
    ax.set(ylabel="south to north [m]", ylim=(0, 32), title=f"{name}, round {moment}")
axes[1].set_xlabel("west to east [m]")
axes[0].legend(fontsize="small", loc="upper right", ncols=2)
fig.suptitle("Most heavy pairs are cut, and which are heavy changes with the hour")
plt.show()
# sphinx_gallery_thumbnail_number = 2

# %%
# What to change for your own data
# --------------------------------
# - ``weights`` and ``i, j``: one row per round, one column an edge, as they were measured.
# - ``resolved``: whatever proposes cuts today, also a plain vector of signs ``s``: its matrix is
#   ``np.outer(s, s)``, a member of the set.
# - More than some hundred points: keep the set and leave out the picture. The oracle then takes some
#   products of a vector with the Laplacian, which may be sparse.
# - Live: ``session.play(advice={...})`` before a round, ``session.observe(loss=..., constraint=...)``
#   after it, see :doc:`/how-to/operating`.
