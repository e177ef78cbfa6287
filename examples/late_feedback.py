"""
Late feedback and a link failure
================================

A network operator splits traffic between two cities over the paths of a backbone, every half hour.
The measurements of a round take an hour to come in. On Thursday a cable is cut, and on
Saturday the collector of the measurements is down for eight hours and then sends them all at once.

Time-varying: costs and free capacities of all links. Hard constraints: everything that comes in must go
out, at every node, and nothing may be sent over a cable that is cut. Soft constraints: the free
capacities, which are known only afterwards.
"""

import matplotlib.pyplot as plt
import numpy as np

import tidewolf as tw

ROUNDS = 336  # 56 in the tests
DAY = 48  # 8 in the tests
LATE = 2  # 1 in the tests
BLUE, ORANGE, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
rng = np.random.default_rng(0)

# %%
# A week of a backbone
# --------------------
# Costs are milliseconds, and they grow with the other traffic, which follows the hour.
# The free capacity is what other traffic leaves.

km = {
    ("SEA", "DEN"): 1640, ("SEA", "SFO"): 1090, ("SFO", "DEN"): 1520, ("SFO", "LAX"): 560,
    ("LAX", "HOU"): 2210, ("DEN", "HOU"): 1410, ("DEN", "CHI"): 1480, ("HOU", "ATL"): 1130,
    ("CHI", "ATL"): 950, ("CHI", "NYC"): 1150, ("ATL", "NYC"): 1200,
}  # fmt: skip
K = tw.sets.FlowPolytope.from_edges(list(km), source="SEA", target="NYC")
names = list(K.names)

hours = 24 * np.arange(ROUNDS)[:, None] / DAY
awake = 0.5 - 0.5 * np.cos(2 * np.pi * (hours - rng.uniform(3, 7, len(km))) / 24)
slow = np.zeros((ROUNDS, len(km)))  # what today has and yesterday had not
for t in range(1, ROUNDS):
    slow[t] = 0.95 * slow[t - 1] + 0.1 * rng.standard_normal(len(km))
others = np.clip(0.1 + 0.5 * awake + 0.5 * slow, 0.0, 0.75)  # of a link's capacity
costs = np.array(list(km.values())) / 200.0 * (1.0 + 2.0 * others**2)  # milliseconds
capacities = 1.3 - others  # of our traffic
losses, limits = tw.functions.Linear(costs), tw.functions.Capacity(capacities)

# %%
# When things are known
# ---------------------
# ``arrives[r]`` is the round at whose end the measurements of round ``r`` come in. The cut, on the
# other hand, is known before the round: an alarm reports it.

arrives = np.arange(ROUNDS) + LATE
collector_down = slice(5 * DAY + DAY // 4, 5 * DAY + DAY // 4 + DAY // 3)
arrives[collector_down] = np.maximum(arrives[collector_down], collector_down.stop)
cut = range(3 * DAY + 10 * DAY // 24, 3 * DAY + 16 * DAY // 24)
unavailable = [["DEN > CHI"] if t in cut else None for t in range(ROUNDS)]

# %%
# Live
# ----
# ``play(round=t)`` decides a round while older ones are pending, ``observe(round=r)`` takes the feedback of
# any of them, in any order. Decisions do not change afterwards.

learner = tw.Ensemble(K, experts=[tw.experts.Season(DAY), tw.experts.Resolve(headroom=(0, 2))])
session = tw.Session(learner)
waiting, decided, most = {}, [], 0
for t in range(ROUNDS):
    decided.append(session.play(round=t, unavailable=unavailable[t]))
    waiting.setdefault(arrives[t], []).append(t)
    most = max(most, len(session.pending))
    for r in waiting.pop(t, []):
        session.observe(round=r, costs=costs[r], capacities=capacities[r])
decided = np.array(decided)
print(f"{session.rounds} rounds observed, {len(session.pending)} still wait, {most} at the most")
print(f"while it is cut, DEN > CHI carries {decided[cut, names.index('DEN > CHI')].max():g}")
assert (decided[cut, names.index("DEN > CHI")] == 0.0).all()

# %%
# The same week from a table
# --------------------------
# Recorded data say the same with ``Stream(arrives=..., unavailable=...)``. The run comes with a
# certificate, which covers delays: the bounds count exactly how far a decision had moved on by
# the time its feedback came. Up to Saturday's outage both decide the same, bit for bit; measurements
# that come in together are one step here, while the session above takes them one by one.

stream = tw.Stream(losses, limits, arrives=arrives, unavailable=unavailable)
late = tw.run(learner, stream, decisions=True)
assert late.certificate.holds
assert (late.decisions.points == decided)[: collector_down.stop].all()
print(late.experts)

# %%
# What the delay costs
# --------------------
# Four others play the same week: the same learner with measurements at the end of each
# round, the same learner late and without advice, and re-solving alone, which takes the newest
# measurements for those of the next round, without headroom and with twice the usual drop of a
# limit kept in hand.

in_time = tw.run(learner, tw.Stream(losses, limits, unavailable=unavailable))
assert in_time.certificate.holds
own = tw.run(tw.Ensemble(K, experts=[tw.experts.Season(DAY)]), stream)
assert own.certificate.holds
resolve = tw.run(tw.baselines.Resolve(K), stream)
careful = tw.run(tw.baselines.Resolve(K, headroom=2.0), stream)
fixed = tw.best_in_hindsight(K, tw.Stream(losses, limits))

runs = {
    "Ensemble, in time": in_time,
    "Ensemble, late": late,
    "Ensemble, late, no advice": own,
    "re-solving, late": resolve,
    "re-solving, late, headroom 2": careful,
}
for name, run in runs.items():
    print(
        f"{name:29s} {run.losses.mean():6.2f} ms a round, "
        f"{100 * run.violations.mean():5.2f} % of our traffic above a limit"
    )
if fixed.feasible:
    print(
        f"{'best fixed split':29s} {fixed.upper / ROUNDS:6.2f} ms a round, no cut, no limit broken"
    )

# %%
# A delay of one hour costs some milliseconds and violates limits half as much again. Late re-solving
# without headroom is cheaper still, and violates limits about three times as much as the late learner.
# With the right headroom it is as good as the learner, and simpler. Which headroom is right one
# knows only afterwards: the learner had both as advice and found out. (The same for the seeds 0, 1
# and 2.)

fig, axes = plt.subplots(2, 1, figsize=(8, 4.5), layout="constrained", sharex=True)
days = np.arange(ROUNDS) / DAY
for name, colour in zip(
    ("re-solving, late", "Ensemble, late", "Ensemble, in time"), (ORANGE, BLUE, GREEN), strict=True
):
    smooth = np.convolve(runs[name].losses, np.ones(DAY // 4) / (DAY // 4), "valid")
    axes[0].plot(days[DAY // 4 - 1 :], smooth, color=colour, label=name)
    axes[1].plot(days, np.cumsum(runs[name].violations), color=colour)
for ax in axes:
    ax.axvspan(cut.start / DAY, cut.stop / DAY, color="0.85", zorder=0, label="cable cut")
    ax.axvspan(
        collector_down.start / DAY, collector_down.stop / DAY, color=PINK, alpha=0.25, zorder=0,
        label="no measurements",
    )  # fmt: skip
axes[0].set(ylabel="cost [ms]")
axes[1].set(ylabel="broken so far\n[rounds x our traffic]", xlabel="day")
fig.suptitle("Late measurements cost little in milliseconds and more in broken limits")
fig.legend(
    *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize="small"
)

# %%
# Around the cut
# --------------
# The decision leaves the cable in the round the alarm comes, whatever waits, and comes back when it
# is spliced.

fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
near = slice(3 * DAY, 4 * DAY)
watched = ("DEN > CHI", "DEN > HOU", "LAX > HOU", "CHI > NYC")
for name, colour in zip(watched, (ORANGE, BLUE, GREEN, PINK), strict=True):
    k = names.index(name)
    ax.step(24 * (days[near] - 3), decided[near, k], where="post", color=colour, label=name)
ax.axvspan(24 * (cut.start / DAY - 3), 24 * (cut.stop / DAY - 3), color="0.85", zorder=0)
ax.set(xlabel="hour of Thursday", ylabel="share of our traffic", ylim=(0, 1.02))
ax.set_title("Nothing goes over DEN > CHI while it is cut; its traffic takes the south")
fig.legend(loc="outside lower center", ncols=4)

# %%
# The delay alone
# ---------------
# How much would faster measurements be worth? Play the week again with other delays, without the
# cut, and without advice, which is quicker.

delays = (0, 1, LATE, 2 * LATE, 4 * LATE)
totals = [tw.run(learner, tw.Stream(losses, limits, arrives=np.arange(ROUNDS) + d)) for d in delays]
fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
minutes = [60 * 24 * d / DAY for d in delays]
broken = [100 * run.violations.mean() for run in totals]
ax.plot(minutes, broken, "o-", color=BLUE, label="broken limits")
ax.set(xlabel="delay of the measurements [minutes]", ylim=(0, None))
ax.set_ylabel("above a limit [% of our traffic, mean]")
ax.set_title("What faster measurements would buy")
price = ax.twinx()
price.plot(minutes, [run.losses.mean() for run in totals], "s--", color=ORANGE, label="cost")
price.set_ylabel("cost [ms a round]")
fig.legend(loc="outside lower center", ncols=2)
plt.show()
# sphinx_gallery_thumbnail_number = 2

# %%
# What to change for your own data
# --------------------------------
# - ``km``: your links, as ``(tail, head)`` pairs that lead from source to target without a cycle;
#   :func:`tidewolf.sets.graph_tools.away` picks such links from any network.
# - ``costs``, ``capacities``: one row per round. ``arrives``: when each row came, as a round.
# - Live, ``tw.Session.open("routing.db", learner, expire_after=8)`` keeps everything in a file, and
#   gives up on measurements that are more than eight rounds late; see :doc:`/how-to/operating`.
