"""
Tunnels on a backbone
=====================

A carrier splits the traffic between pairs of cities over a few tunnels each, and wants the fullest
link as empty as possible. Traffic matrices change every five to fifteen minutes, and a split is
installed before the traffic of its interval is known. Hard constraints: all traffic of a pair is on its
tunnels, none of it on one that a fibre cut has taken down. Soft constraints: nothing; how full the fullest
link is, is the loss itself.
"""

from itertools import pairwise

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

import tidewolf as tw

ROUNDS = 384  # 48 in the tests
DAY = 96  # rounds: a quarter of an hour each
SEED = 0
BLUE, ORANGE = "#0072B2", "#D55E00"
plt.rcParams.update({"figure.figsize": (8, 4.5), "figure.constrained_layout.use": True})

# %%
# The network
# -----------
#
# Eleven cities, and cables as the Abilene research network had them, with round numbers for lengths
# (km) and capacities (Gbit/s). Each of the 110 pairs has up to three tunnels: its shortest paths.

link_rows = [
    ("Seattle", "Sunnyvale", 1100), ("Seattle", "Denver", 1600), ("Sunnyvale", "Los Angeles", 500),
    ("Sunnyvale", "Denver", 1500), ("Los Angeles", "Houston", 2200), ("Denver", "Kansas City", 900),
    ("Kansas City", "Houston", 1000), ("Kansas City", "Indianapolis", 700),
    ("Houston", "Atlanta", 1100), ("Indianapolis", "Atlanta", 700),
    ("Indianapolis", "Chicago", 300), ("Chicago", "New York", 1100),
    ("Atlanta", "Washington", 900), ("New York", "Washington", 300),
]  # fmt: skip
graph = nx.Graph()
graph.add_weighted_edges_from(link_rows, weight="length")
nx.set_edge_attributes(graph, 10.0, "capacity")
pairs = [(a, b) for a in graph for b in graph if a != b]
tunnels = tw.networks.Tunnels(graph, pairs, k=3)
K = tunnels.splits
print(tunnels, K.dimension, "numbers to decide")
print(*tunnels.names[:3], sep="\n")

# %%
# Traffic
# -------
#
# A gravity model: large cities talk to large cities, more by day than by night, with noise of its
# own for every pair, and now and then a burst between two of them that lasts some hours.

rng = np.random.default_rng(SEED)
size = dict(zip(graph, rng.lognormal(0.0, 0.7, len(graph)), strict=True))
gravity = np.array([size[a] * size[b] for a, b in pairs])
gravity *= 26.0 / gravity.sum()
time = np.arange(ROUNDS)[:, None]
daily = 1.0 + 0.5 * np.sin(2 * np.pi * (time / DAY - 0.3 + 0.1 * rng.random(len(pairs))))
noise = rng.standard_normal((ROUNDS, len(pairs)))
for t in range(1, ROUNDS):
    noise[t] = 0.8 * noise[t - 1] + 0.6 * noise[t]
demands = gravity * daily * np.exp(0.3 * noise)
for start in range(0, ROUNDS, 24):
    demands[start : start + 12, rng.integers(len(pairs))] += rng.uniform(1.0, 3.0)
fullest = tunnels.max_utilization(demands)

# %%
# A fibre is cut
# --------------
#
# In the third quarter of the record Atlanta and Washington lose their cable for six hours.
# Every tunnel over it is out from the first round on: that is known, and not a thing to be learned.

cut = {("Atlanta", "Washington"), ("Washington", "Atlanta")}
over_cut = [any(link in cut for link in pairwise(p.nodes)) for p in tunnels.paths]
down = np.zeros((ROUNDS, len(tunnels.paths)), dtype=bool)
outage = slice(ROUNDS // 2, ROUNDS // 2 + min(DAY // 4, ROUNDS // 4))
down[outage] = over_cut
stream = tw.Stream(fullest, unavailable=down)


# %%
# Who plays
# ---------
#
# Three splits that never move, each of them rescaled to the tunnels that are up: everything on the
# shortest tunnel, a third on each, and the best one in hindsight, which no one has beforehand.
# Re-solving takes the traffic of the last quarter of an hour, or of the last two hours.
# The Ensemble is given both, beside descent.


def rescaled(split):
    """How full the fullest link is under a fixed split of what is up, round by round."""
    up = np.where(down, 0.0, np.maximum(split, 1e-9))
    totals = np.add.reduceat(up, np.flatnonzero(np.diff(tunnels.path_pair, prepend=-1)), axis=1)
    return fullest.values_at(up / totals[:, tunnels.path_pair])


lengths = np.array([path.length for path in tunnels.paths])
best = tw.best_in_hindsight(K, tw.Stream(fullest))
resolve = tw.run(tw.baselines.Resolve(K), stream)
recent = tw.experts.Resolve(headroom=0, window=8)
learner = tw.Ensemble(K, experts=[tw.experts.Resolve(headroom=0), recent])
ensemble = tw.run(learner, stream, comparator=best)
assert ensemble.certificate.holds
utilisation = {
    "shortest tunnel": rescaled(K.lmo(lengths)),
    "a third each": rescaled(K.center),
    "best fixed split in hindsight": rescaled(best.point),
    "re-solving": resolve.losses,
    "Ensemble": ensemble.losses,
}

# %%
# The least that was possible in each round, had its traffic been known. Re-solving decides for the
# next round what would have been best in this one, so its decisions come one round late.


def in_hindsight(functions, out):
    """How full the fullest link is at each round's own best split; of the last round none."""
    run = tw.run(tw.baselines.Resolve(K), tw.Stream(functions, unavailable=out), decisions=True)
    return functions[:-1].values_at(run.decisions.points[1:])


least = in_hindsight(fullest, None)
during = fullest[outage.start : outage.stop + 1]
least[outage] = in_hindsight(during, np.tile(over_cut, (len(during), 1)))
for name, used in utilisation.items():
    above = used[:-1] / least
    mean, p99 = above.mean(), np.percentile(above, 99)
    print(f"{name:30s} {used.mean():.3f}; over the least: mean {mean:.2f}, p99 {p99:.2f}")
print(ensemble.experts)
assert utilisation["Ensemble"].mean() < utilisation["re-solving"].mean()
assert utilisation["re-solving"].mean() < utilisation["shortest tunnel"].mean()

# %%
# The member called "last, headroom 0 (2)" is the one with two hours of traffic. It is better than
# the newest matrix alone, because noise averages out. The mix plays their weighted mean; over these
# four days that is better than either, a mean of splits being smoother than its parts.
#
# Where it does not win: the best fixed split is as good, on traffic that repeats itself like this.
# If somebody can compute it for you beforehand, from days that are like the next ones, you need
# nothing else. When a burst begins, anyone who learns from the past is a round late.

colours = {"shortest tunnel": "#999999", "re-solving": BLUE, "Ensemble": ORANGE}
hours = np.arange(ROUNDS) * 24 / DAY

figure, axes = plt.subplots()
axes.axvspan(hours[outage][0], hours[outage][-1], color="#DDDDDD", label="fibre cut")
for name, colour in colours.items():
    axes.plot(hours, 100 * utilisation[name], color=colour, linewidth=1, label=name)
axes.plot(hours[:-1], 100 * least, ":", color="black", linewidth=0.8, label="the least possible")
axes.set(xlabel="hours", ylabel="fullest link (% of its capacity)", xlim=(0, hours[-1]))
axes.set_title("Three tunnels a pair instead of one take the peaks off the fullest link")
axes.legend(ncols=2)

# %%
# Where the traffic is, on the mean quarter of an hour: thick links carry more.

places = {
    "Seattle": (-122, 48), "Sunnyvale": (-122, 37), "Los Angeles": (-118, 34), "Denver": (-105, 40),
    "Kansas City": (-95, 39), "Houston": (-95, 30), "Indianapolis": (-86, 40), "Chicago": (-88, 42),
    "Atlanta": (-84, 34), "New York": (-74, 41), "Washington": (-77, 39),
}  # fmt: skip
split = learner.act(ensemble.final_state)
load = tunnels.incidence @ (demands.mean(axis=0)[tunnels.path_pair] * split)
of_link = dict(zip(tunnels.links, 100 * load / tunnels.capacities, strict=True))
both_ways = [max(of_link[a, b], of_link[b, a]) for a, b in graph.edges]

figure, axes = plt.subplots()
nx.draw_networkx_nodes(graph, places, node_size=30, node_color="black", ax=axes)
for city, place in places.items():
    beside = (0, 9) if place[1] > 36 else (0, -16)
    axes.annotate(city, place, xytext=beside, textcoords="offset points", ha="center", fontsize=8)
style = {"width": [1 + use / 10 for use in both_ways], "edge_cmap": plt.cm.viridis_r}
drawn = nx.draw_networkx_edges(graph, places, edge_color=both_ways, ax=axes, **style)
figure.colorbar(drawn, ax=axes, label="load of the fuller direction (% of its capacity)")
axes.tick_params(left=True, bottom=True, labelleft=True, labelbottom=True)
axes.set(xlabel="longitude (degrees)", ylabel="latitude (degrees)", ylim=(27, 50))
axes.set_title("The last split, under the mean traffic")
plt.show()

# %%
# What to change for your own data
# --------------------------------
#
# * ``graph`` is any networkx graph, or a list of ``(tail, head, length, capacity)``; ``pairs`` are
#   those that have traffic; ``k`` is how many tunnels your routers take. With few tunnels a cut can
#   leave a pair without any, which is refused with the names of the tunnels that are missing.
# * ``demands`` has a row for each round and a column for each pair.
# * To keep delay low and let utilisation be a limit, take :class:`tidewolf.functions.LoadCost` as
#   the loss and :class:`tidewolf.functions.MaxUtilization` with ``limit=0.8`` as the constraint.
# * If routers cannot follow large changes, cap them: ``tw.Ensemble(..., max_move=2.0)`` moves two
#   pairs' worth of traffic a round at most.
