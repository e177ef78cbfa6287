"""
Matrix completion with a fairness rule
======================================

A market place predicts the rating of every article by a customer, from ratings that come in one
at a time. Articles of small shops are rated a little lower, and a rule says how far the market may
rank them behind the others for the customer of the moment. The rule is checked afterwards, and how
strict it is changes with the season.

Time-varying: who rates what, tastes (slowly), and the rule. Hard constraints: the matrix of all forecasts
has a nuclear norm of at most :math:`\\tau`, which keeps it near few tastes. Soft constraints: the rule.
"""

import matplotlib.pyplot as plt
import numpy as np

import tidewolf as tw

ROUNDS = 1_000  # 60 in the tests
CUSTOMERS = 20  # 8 in the tests
ARTICLES = 12  # 6 in the tests
TAU = 30.0
BLUE, ORANGE, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
rng = np.random.default_rng(0)

# %%
# Customers and articles
# ----------------------
# A rating is a number of stars, counted from the middle of the scale: -2 to 2. It is a customer's
# taste (two numbers, which turn slowly) times the nature of an article, plus what its shop is
# usually given, plus noise.

user = rng.integers(0, CUSTOMERS, ROUNDS)
item = rng.integers(0, ARTICLES, ROUNDS)
small = np.arange(ARTICLES) % 3 == 0
now, later = rng.standard_normal((2, CUSTOMERS, 2)) / np.sqrt(2)
nature = rng.standard_normal((ARTICLES, 2))
angle = np.pi / 4 * np.arange(ROUNDS)[:, None] / ROUNDS
taste = np.cos(angle) * now[user] + np.sin(angle) * later[user]
rating = (taste * nature[item]).sum(axis=1) + np.where(small, -0.4, 0.2)[item]
rating = np.clip(rating + 0.3 * rng.standard_normal(ROUNDS), -2.0, 2.0)

# %%
# Loss and rule
# -------------
# In round :math:`t` customer :math:`u` rates article :math:`i` with :math:`m`:
#
# .. math:: f_t(X) = \tfrac12 (X_{ui} - m)^2, \qquad
#           g_t(X) = \operatorname{mean}_{\text{others}} X_{uj}
#                    - \operatorname{mean}_{\text{small}} X_{uj} - b_t .
#
# The loss sees one entry, the rule a whole row: forecasts that were never tested count in it.

shape = (CUSTOMERS, ARTICLES)
K = tw.sets.NuclearBall(shape, tau=TAU)
losses = tw.functions.Squared(rating[:, None], (user * ARTICLES + item)[:, None], shape)
behind = np.where(small, -1.0 / small.sum(), 1.0 / (~small).sum())  # a row's gap
rows = np.zeros((ROUNDS, *shape))
rows[np.arange(ROUNDS), user] = behind
allowed = 0.35 + 0.25 * np.sin(8 * np.pi * np.arange(ROUNDS) / ROUNDS)  # stars
rule = tw.functions.Affine(rows, allowed)


# %%
# Baselines
# ---------
# Fit two small factors to all ratings so far, by alternating least squares, again every twenty
# rounds. That knows nothing of the rule. Repaired, it shifts the forecasts of a row just so far that
# the rule of the round before would have been kept.


def fitted(rank=3, every=20):
    own = np.random.default_rng(1)
    P, Q = np.zeros((CUSTOMERS, rank)), 0.5 * own.standard_normal((ARTICLES, rank))
    found = np.zeros((ROUNDS, *shape))
    for t in range(every, ROUNDS):
        if t % every == 0:
            for _ in range(3):
                for side, other, mine, theirs in ((P, Q, user, item), (Q, P, item, user)):
                    for k in range(len(side)):
                        rated = np.flatnonzero(mine[:t] == k)
                        X = other[theirs[rated]]
                        side[k] = np.linalg.solve(X.T @ X + np.eye(rank), X.T @ rating[rated])
        found[t] = P @ Q.T
    return found


fit = fitted()
known = np.concatenate([allowed[:1], allowed[:-1]])  # the first round is given its own
over = np.maximum(fit @ behind - known[:, None], 0.0)
repaired = fit - over[..., None] * behind / (behind @ behind)

# %%
# Play
# ----
# Alone, and with both as advice. A proposal outside the nuclear ball would be projected first.

stream = tw.Stream(losses, rule, advice={"fit": fit, "repaired fit": repaired})
alone = tw.run(tw.Ensemble(K), stream, decisions=True)
run = tw.run(tw.Ensemble(K, experts=["fit", "repaired fit"]), stream, decisions=True)
assert alone.certificate.holds
assert run.certificate.holds
print(run.experts)

# %%
best = tw.best_in_hindsight(K, stream)
played = {
    "always the middle": np.zeros_like(fit),
    "fit": fit,
    "repaired fit": repaired,
    "Ensemble alone": alone.decisions.points,
    "Ensemble with both": run.decisions.points,
    "best fixed in hindsight": np.broadcast_to(best.point, fit.shape),
}
squares = {name: 2.0 * losses.values_at(points) for name, points in played.items()}
breach = {name: np.maximum(rule.values_at(points), 0.0) for name, points in played.items()}
for name in played:
    print(
        f"{name:24s} {np.sqrt(squares[name].mean()):.3f} stars off (root mean square), "
        f"rule broken by {1000 * breach[name].mean():7.2f} thousandths of a star"
    )

# %%
# The fit is the most accurate of those that can be played, and breaks the rule all the time.
# Repaired, it breaks it seldom. The run with both as advice finds out which of the two to follow: it
# is some percent less accurate than the repaired fit, and breaks the rule no more (about half as
# much with seed 0, a third with seed 1, the same with seed 2). Alone it learns far more slowly than
# a fit that looks at all ratings again and again: one gradient per round, each of one entry. If all you
# have is such a fit and one rule that a formula repairs, that is enough; the run is useful if
# you do not know which of several forecasts to trust, or want a bound on what it cost.

shown = {"fit": PINK, "repaired fit": ORANGE, "Ensemble alone": GREEN, "Ensemble with both": BLUE}
so_far = np.arange(1, ROUNDS + 1)
fig, axes = plt.subplots(1, 2, figsize=(8, 4.5), layout="constrained")
for name, colour in shown.items():
    axes[0].plot(np.sqrt(np.cumsum(squares[name]) / so_far), color=colour, label=name)
    if name != "fit":
        axes[1].plot(np.cumsum(breach[name]), color=colour)
least = np.sqrt(squares["best fixed in hindsight"].mean())
axes[0].axhline(least, color="black", ls=":", label="best fixed in hindsight")
axes[0].set(xlabel="round", ylabel="error so far [stars, root mean square]", ylim=(0.3, 1.2))
axes[0].set_title("Accuracy")
axes[1].set(xlabel="round", ylabel="rule broken so far [stars x rounds]")
axes[1].set_title(f"Rule (the fit alone: {breach['fit'].sum():.0f})")
fig.suptitle("The run finds out to follow the repaired fit; alone it learns slowly")
fig.legend(loc="outside lower center", ncols=3)

# %%
# What the run believes in the end, beside what ratings are before noise: few tastes, and small shops
# (marked) lifted where the rule asks for it.

truth = (np.cos(angle[-1]) * now + np.sin(angle[-1]) * later) @ nature.T + np.where(
    small, -0.4, 0.2
)
fig, axes = plt.subplots(1, 2, figsize=(8, 4.5), layout="constrained", sharey=True)
for ax, matrix, name in zip(
    axes, (truth, run.decisions.points[-1]), ("truth", "forecast"), strict=True
):
    image = ax.imshow(matrix, cmap="RdBu", vmin=-2, vmax=2, aspect="auto")
    ax.set(xlabel="article", title=name, xticks=np.flatnonzero(small), yticks=[])
axes[0].set_ylabel("customer")
axes[0].set_xticklabels(["small"] * small.sum(), rotation=45)
axes[1].set_xticklabels(["small"] * small.sum(), rotation=45)
fig.colorbar(image, ax=axes, label="stars from the middle")
fig.suptitle("The forecast keeps the tastes and lifts the small shops")
plt.show()
# sphinx_gallery_thumbnail_number = 2

# %%
# What to change for your own data
# --------------------------------
# - ``user``, ``item``, ``rating``: your log, oldest first. Several ratings per round:
#   ``tw.functions.Squared.of([((rows, columns), values), ...], shape)``.
# - ``TAU``: the nuclear norm of a fit to old data is a good guess.
# - The rule may be any convex function of the matrix; limits on single entries are
#   :class:`tidewolf.functions.Range`, and for those a forecast may as well be clipped.
# - :func:`tidewolf.problems.completion` is a larger stream of this kind.
