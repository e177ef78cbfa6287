"""
Beamforming under interference limits
=====================================

A row of antennas sends to a user who walks about, with limits on the interference at other receivers: a
base station beside radio telescopes, or a second network on the same band. What is decided in every
round is the covariance of what the antennas send. Received power is measured afterwards.

Time-varying: the walker, the receivers (a little), the fading of all of them, and the limit of each
receiver. Hard constraints: a covariance is positive semidefinite, and its trace, the power, is at most 1.
Soft constraints: the limits of the receivers. This is Example II of Garber and Kretzu (2024), whose data
:func:`tidewolf.problems.sdp` draws at full size.
"""

import matplotlib.pyplot as plt
import numpy as np

import tidewolf as tw

ROUNDS = 300  # 30 in the tests
ANTENNAS = 12  # 6 in the tests
BLUE, ORANGE, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
rng = np.random.default_rng(0)

# %%
# Antennas, a walker, three receivers
# -----------------------------------
# The antennas stand in a line, half a wavelength apart. At an angle :math:`\phi` antenna :math:`k`
# counts for :math:`\sqrt{2/n}\,\cos(\pi k \sin\phi)`, and fading comes on top of that.

t = np.arange(ROUNDS)[:, None]
own = np.arange(3)
walker = 35.0 + 10.0 * np.sin(2 * np.pi * t / 150)  # degrees
receivers = np.array([12.0, 29.0, 55.0]) + 1.5 * np.sin(
    2 * np.pi * (t / (140 + 20 * own) + own / 3)
)
bears = 0.02 + 0.08 * (0.5 + 0.5 * np.cos(2 * np.pi * (t / (120 + 15 * own) + own / 3)))


def pattern(degrees):
    """What each antenna counts for at each angle."""
    phase = np.pi * np.arange(ANTENNAS) * np.sin(np.radians(degrees))[..., None]
    return np.sqrt(2 / ANTENNAS) * np.cos(phase)


fading = np.zeros((ROUNDS, 4, ANTENNAS))
for k in range(1, ROUNDS):
    fading[k] = 0.95 * fading[k - 1] + 0.31 * rng.standard_normal((4, ANTENNAS))
gains = pattern(np.hstack([walker, receivers])) + 0.2 / np.sqrt(ANTENNAS) * fading
h, a = gains[:, 0], gains[:, 1:]  # of the walker, of the receivers


# %%
# In the paper's letters
# ----------------------
# .. math:: K = \{X \succeq 0,\ \operatorname{tr} X \le 1\}, \qquad f_t(X) = -h_t^\top X h_t, \qquad
#           g_t(X) = \max_i\, a_{ti}^\top X a_{ti} - b_{ti} .
#
# A projection on :math:`K` is a whole eigenvalue decomposition; the linear minimiser is one
# eigenvector.

K = tw.sets.BoundedPSD(ANTENNAS, tau=1.0)
losses = tw.functions.Linear(-h[:, :, None] * h[:, None, :])
limits = tw.functions.MaxAffine(a[..., :, None] * a[..., None, :], bears)

# %%
# Baselines
# ---------
# There are two closed forms, both with the gains of the round before. *Beam*: all power towards the
# walker. *Zero-forcing*: the same within the directions that no receiver hears. And there is
# re-solving: the best covariance for the last round's gains and limits, by
# :class:`tidewolf.baselines.Resolve`, without headroom and with twice what a limit usually drops in a
# round.


def towards(v):
    return np.outer(v, v) / (v @ v)


last = np.maximum(np.arange(ROUNDS) - 1, 0)  # the first round is given its own
beam = np.array([towards(v) for v in h[last]])
heard = [np.linalg.qr(A.T)[0] for A in a[last]]  # what the receivers hear, as a basis
zero_forcing = np.array([towards(v - Q @ (Q.T @ v)) for v, Q in zip(h[last], heard, strict=True)])
stream = tw.Stream(losses, limits)
resolved = tw.run(tw.baselines.Resolve(K, columns=True), stream, decisions=True)
careful = tw.run(tw.baselines.Resolve(K, columns=True, headroom=2.0), stream, decisions=True)

# %%
# Play
# ----
# Alone; with the two closed forms as advice; and with re-solving beside them.

advice = {
    "beam": beam,
    "zero-forcing": zero_forcing,
    "re-solving": resolved.decisions.points,
    "re-solving, headroom 2": careful.decisions.points,
}
advised = tw.Stream(losses, limits, advice=advice)
alone = tw.run(tw.Ensemble(K), stream, decisions=True)
two = tw.run(tw.Ensemble(K, experts=["beam", "zero-forcing"]), advised, decisions=True)
run = tw.run(tw.Ensemble(K, experts=list(advice)), advised, decisions=True)
assert alone.certificate.holds
assert two.certificate.holds
assert run.certificate.holds
print(run.experts)

# %%
played = {
    **advice,
    "Ensemble alone": alone.decisions.points,
    "Ensemble, two closed forms": two.decisions.points,
    "Ensemble, all four": run.decisions.points,
}
best = tw.best_in_hindsight(K, stream)
played["best fixed in hindsight"] = np.broadcast_to(best.point, beam.shape)
power = {name: -losses.values_at(points) for name, points in played.items()}
over = {name: np.maximum(limits.values_at(points), 0.0) for name, points in played.items()}
for name in played:
    print(
        f"{name:27s} the walker hears {power[name].mean():.3f}, "
        f"receivers {1000 * over[name].mean():6.2f} thousandths too much"
    )

# %%
# Of the two closed forms one violates all limits and the other wastes what the receivers
# would tolerate. No expert proposes anything in between, yet the run plays there, as a mix of the two. Re-solving
# is better than both here, because gains change slowly and the last round tells nearly all of the
# next. With headroom it is the best of all, if one knows which. The run that has all four as advice
# sends the walker as much, and lets the receivers hear two to three times as much too much: the
# cost of not knowing which to follow. Alone the run is far behind: one gradient per round cannot follow
# a user at whom a formula can point. (The same for the seeds 0, 1 and 2.)

fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
styles = {
    "beam": (ORANGE, "v"),
    "zero-forcing": (ORANGE, "^"),
    "re-solving": (PINK, "s"),
    "re-solving, headroom 2": (PINK, "D"),
    "best fixed in hindsight": ("black", "x"),
    "Ensemble alone": (BLUE, "o"),
    "Ensemble, two closed forms": (GREEN, "o"),
    "Ensemble, all four": (BLUE, "*"),
}
for name, (colour, marker) in styles.items():
    place = 1000 * over[name].mean(), power[name].mean()
    ax.scatter(*place, color=colour, marker=marker, s=90, label=name)
ax.set(xscale="symlog", xlim=(-0.2, None), ylim=(0, None), ylabel="heard by the walker, mean")
ax.set_xlabel("heard too much by the worst receiver [thousandths of the power, mean]")
ax.set_title("Mixing two formulas lands between them; re-solving with headroom is hard to beat")
ax.legend(fontsize="small", loc="lower right")

# %%
# The beam of one round
# ---------------------
# What would be heard at every angle, without fading, in the round in which the mix gains most over
# zero-forcing. The dots are the receivers and what they bear.

moment = int(np.argmax(power["Ensemble, two closed forms"] - power["zero-forcing"]))
angles = np.linspace(0.0, 80.0, 400)
fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
drawn = {"beam": ORANGE, "zero-forcing": PINK, "Ensemble, two closed forms": GREEN}
for name, colour in drawn.items():
    spread = np.einsum("ai,ij,aj->a", pattern(angles), played[name][moment], pattern(angles))
    ax.plot(angles, spread, color=colour, label=name)
ax.axvline(walker[moment, 0], color="0.7", zorder=0, label="walker")
ax.plot(receivers[moment], bears[moment], "o", color="black", label="receivers, what they bear")
ax.set(xlabel="angle [degrees]", ylabel="power heard", ylim=(0, None))
ax.set_title(f"Round {moment}: the mix lies between the two beams")
ax.legend()
plt.show()
# sphinx_gallery_thumbnail_number = 2

# %%
# What to change for your own data
# --------------------------------
# - ``h`` and ``a``: your measured gains, rounds first. Complex gains :math:`u + iv` of :math:`n`
#   antennas are real ones of :math:`2n`: a receiver then has the two rows :math:`(u, v)` and
#   :math:`(-v, u)`, and what it hears is the sum of both.
# - ``bears``: what each receiver bears, a column each.
# - ``advice``: whatever points the beam today. Points outside the set are projected
#   first.
# - ``per_constraint=True`` gives every receiver its own weight and bound (``run.limits``).
