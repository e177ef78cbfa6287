"""
Routing with forecasts, seasons and headroom
============================================

A network team splits one large flow over a backbone every half hour. What links charge and how much
room they have left move through the day, and both are measured only afterwards. Hard constraints: all of the
flow arrives, on paths of the network. Soft constraints: no link carries more than the room it turns out to
have.

The usual answer is to solve a linear program with the newest measurements, and to keep some of
every link free, because measurements are old by the time they are used. How much to keep free,
whether the hour of the day is a better guide, and how far to believe the forecast are questions
that :class:`tidewolf.Ensemble` answers while it runs.
"""

import matplotlib.pyplot as plt
import numpy as np

import tidewolf as tw

ROUNDS = 672  # 48 in the tests
DAY = 48  # rounds
SEED = 0
BLUE, ORANGE, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
plt.rcParams.update({"figure.figsize": (8, 4.5), "figure.constrained_layout.use": True})

# %%
# The network and what moves
# --------------------------
#
# Twelve links lead from Seattle to New York. Every link has a rush hour of its own, and a
# disturbance that comes and goes within a few hours. Room is a share of the flow: 0.7 means that a
# link takes 70 % of it; half of it always fits.

links = [
    *(("SEA", "DEN"), ("SEA", "SFO"), ("SEA", "MSP"), ("SFO", "DEN"), ("SFO", "HOU")),
    *(("DEN", "CHI"), ("DEN", "HOU"), ("MSP", "CHI"), ("CHI", "ATL"), ("HOU", "ATL")),
    *(("CHI", "NYC"), ("ATL", "NYC")),
]
K = tw.sets.FlowPolytope.from_edges(links, source="SEA", target="NYC")


def disturbance(rng, memory):
    """Noise that forgets, one for each link, with standard deviation 1."""
    noise = rng.standard_normal((ROUNDS, len(links)))
    for t in range(1, ROUNDS):
        noise[t] = memory * noise[t - 1] + np.sqrt(1 - memory**2) * noise[t]
    return noise


def costs_and_room(busy):
    """What a unit of flow costs on each link, and how much of the flow it takes."""
    return 2.0 + 0.6 * busy, np.maximum(0.7 - 0.12 * busy, 0.5)


rng = np.random.default_rng(SEED)
rush = np.sin(2 * np.pi * (np.arange(ROUNDS)[:, None] / DAY + rng.random(len(links))))
busy = 0.7 * rush + 0.5 * disturbance(rng, memory=0.9)
costs, room = costs_and_room(busy)
stream = tw.Stream(tw.functions.Linear(costs), tw.functions.Capacity(room))

# %%
# A forecast comes before each round. At first it is good: it misses by less than a half hour of
# waiting would. From the middle of the record on its feed is stuck, and it repeats what was true
# six hours ago. We are not told.

foreseen = busy + 0.1 * disturbance(rng, memory=0.5)
stuck = np.arange(ROUNDS) >= ROUNDS // 2
foreseen[stuck] = np.roll(busy, DAY // 4, axis=0)[stuck]
foreseen_costs, foreseen_room = costs_and_room(foreseen)

# %%
# Baselines
# ---------
#
# Re-solve with the last half hour, and keep more and more headroom: multiples of what the room on a
# link usually drops by from one round to the next.

HEADROOMS = (0.0, 1.0, 2.0, 4.0)
resolved = [tw.run(tw.baselines.Resolve(K, headroom=h), stream) for h in HEADROOMS]
for h, run in zip(HEADROOMS, resolved, strict=True):
    print(
        f"re-solving, headroom {h:g}: {run.losses.mean():.3f}, over by {run.violations.mean():.4f}"
    )

# %%
# A split that never moves would have to fit the worst half hour of every link. The best of those
# that do, known only in hindsight, is dear.

best = tw.best_in_hindsight(K, stream)
print(f"best fixed split that keeps every limit: {best.upper / ROUNDS:.3f}")
assert all(run.losses.sum() < best.upper for run in resolved)

# %%
# The Ensemble is given these four as experts, beside the hour of the day. It is not told which
# headroom is right.

learner = tw.Ensemble(K, experts=[tw.experts.Season(DAY), tw.experts.Resolve()])
mixed = tw.run(learner, stream)
assert mixed.certificate.holds
print(f"Ensemble: {mixed.losses.mean():.3f}, over by {mixed.violations.mean():.4f}")
print(mixed.experts)

# %%
# With the forecast
# -----------------
#
# A forecast is a pair of functions that are handed over before the decision, so this is played the
# way a live system does: :class:`tidewolf.Session`, round by round. ``Resolve("forecast")``
# solves with what is foreseen, again with several headrooms.


def live(learner):
    """Losses and violations round by round, and the weights of the experts, if there are some."""
    session, losses, over, weights = tw.Session(learner), [], [], []
    for t in range(ROUNDS):
        loss = tw.functions.Linear.one(foreseen_costs[t])
        x = session.play(forecast=(loss, tw.functions.Capacity.one(foreseen_room[t])))
        session.observe(costs=costs[t], capacities=room[t])
        losses.append(costs[t] @ x)
        over.append(max(0.0, np.max(x - room[t])))
        if isinstance(learner, tw.Ensemble):
            weights.append([one.weight for one in learner.experts_of(session.state)])
    return np.array(losses), np.array(over), np.array(weights)


foreseeing = tw.experts.Resolve("forecast", headroom=(0, 1, 2))
experts = [tw.experts.Season(DAY), tw.experts.Resolve(), foreseeing]
with_forecast = tw.Ensemble(K, experts=experts)
told_losses, told_over, told_weights = live(with_forecast)
believed_losses, believed_over, _ = live(tw.baselines.Resolve(K, headroom=1.0, data="forecast"))

for name, part in (("while the forecast is good", ~stuck), ("once it is stuck", stuck)):
    print(name)
    for who, losses, over in (
        ("re-solving by the last round, headroom 1", resolved[1].losses, resolved[1].violations),
        ("believing the forecast, headroom 1", believed_losses, believed_over),
        ("Ensemble without the forecast", mixed.losses, mixed.violations),
        ("Ensemble with it", told_losses, told_over),
    ):
        print(f"  {who}: {losses[part].mean():.3f}, over by {over[part].mean():.4f}")

# %%
# Believing the forecast alone is the best of all while it is good, and the worst once it is not.
# The Ensemble pays a little for not knowing which: in the first half it costs more than the
# forecast alone, in the second about as much as without any forecast.

assert told_over[stuck].sum() < believed_over[stuck].sum()
assert told_losses[~stuck].sum() < mixed.losses[~stuck].sum()

shares = {"forecast": told_weights[:, -3:], "last half hour": told_weights[:, -7:-3]}
shares["descent and season"] = told_weights[:, :-7]
days = np.arange(ROUNDS) / DAY

figure, axes = plt.subplots()
stacked = [100 * each.sum(axis=1) for each in shares.values()]
axes.stackplot(days, stacked, labels=shares.keys(), colors=[GREEN, BLUE, "#BBBBBB"])
axes.axvline(days[stuck][0], color="black", linestyle="--", label="the feed is stuck")
axes.set(xlabel="days", ylabel="weight in the decision (%)", xlim=(0, days[-1]), ylim=(0, 100))
axes.set_title("A stuck forecast loses its say within hours")
axes.legend(loc="lower left")

# %%
# What each has cost, and by how much limits were broken. The curve is re-solving with its four
# headrooms: one has to be chosen. The Ensemble without a forecast lands on that curve, not
# below it, without a choice.

figure, axes = plt.subplots()
places = [(run.losses.mean(), run.violations.mean()) for run in resolved]
axes.plot(*np.transpose(places), "o-", color=BLUE, label="re-solving, headroom 0 to 4")
for h, place in zip(HEADROOMS, places, strict=True):
    axes.annotate(f"{h:g}", place, textcoords="offset points", xytext=(8, 4), color=BLUE)
for who, losses, over, colour, mark in (
    ("believing the forecast", believed_losses, believed_over, PINK, "s"),
    ("Ensemble", mixed.losses, mixed.violations, ORANGE, "D"),
    ("Ensemble with the forecast", told_losses, told_over, GREEN, "D"),
):
    axes.plot(losses.mean(), over.mean(), mark, color=colour, markersize=9, label=who)
axes.set(xlabel="mean cost of a round", ylabel="mean overload (share of the flow)")
axes.set_title("No headroom has to be chosen, and a forecast that fails does little harm")
axes.legend()
plt.show()

# %%
# What to change for your own data
# --------------------------------
#
# * Your links instead of ``links``, your measurements instead of ``costs`` and ``room``: arrays
#   with a row for each round and a column for each link. A network with cycles, or with many pairs
#   of sources and targets, is a :class:`tidewolf.networks.Network`.
# * Your forecast goes into ``session.play(forecast=(loss, limit))``. If what you have is not a
#   forecast of costs but a decision, such as the one of the system that runs today, give it as
#   ``experts=["incumbent"]`` with ``session.play(advice={"incumbent": x})``.
# * ``caution=10`` is the default. More of it violates limits less and costs more.
# * The season did not help here: two weeks of rounds are few for eight cells, and re-solving is
#   fresher. It keeps its place for the day on which measurements are late.
