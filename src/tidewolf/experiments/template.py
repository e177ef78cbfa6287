"""The file that `tidewolf new` writes: an experiment that runs as it is, with every key
explained.
"""

from __future__ import annotations

from tidewolf.experiments.keys import problem_keys, read_plain
from tidewolf.experiments.loading import FILE_FORMAT, to_toml

_TEXT = """\
# An experiment of tidewolf: tidewolf run {name}.toml
# What stands behind a # may be left out; the values there are the defaults, or examples.
# Paths are seen from this file's folder.

format = {format}                      # of this file; an older tidewolf refuses a newer format
name = {quoted}                # in tables and on the page
# title = "What is decided, under which limits."
# rounds = 1000                 # as many as the stream has by default
seeds = [0]                     # one run a seed; of everything random
# caution = [1, 10, 100]        # the knob between regret and violation: learners that have it run
#                               # at each value; their own default is 10
# incumbent = "decided.csv"     # what was decided in these rounds, as decisions.csv has it (shares,
#                               # not volumes): one more line, and what would have been saved


# The stream: a loss and a limit a round. Either a built-in problem (tidewolf list), with its
# settings ...

[stream]
{stream}
# ... or tables, one row a round, one column a coordinate: CSV (a header line, numbers, perhaps a
# first column called time), Excel ("book.xlsx", or "book.xlsx#Sheet"), NPZ, Parquet ...
#
# [stream]
# costs = "costs.csv"           # the loss of a round is the sum of cost times share
# capacities = "capacities.csv" # the limit: no share above its capacity; without one there is none
# weights = "weights.csv"       # or, in place of capacities: the sum of weight times share ...
# budgets = "budgets.csv"       # ... is at most the round's budget, one column
# demands = "demands.csv"       # of a network whose demands move: a column a commodity
# gaps = "refuse"               # cells without a number, and rows that one table has and another
#                               # has not; "last": the last number of the column; "unseen": such a
#                               # round is played, and no learner learns from it
#
# ... or, for either of the two, functions by name (tidewolf list), their arrays as lists or as
# names of tables, rounds first (NPZ and NPY for more than two axes):
#
# [stream.losses]
# kind = "LogWealth"
# returns = "returns.csv"
#
# [stream.constraints]          # at most 0
# kind = "Affine"
# A = "weights.csv"
# b = "budgets.csv"
#
# What is known before a round, in tables, too: their column called time; under [stream] also
# `context = "kinds.csv"`, a category a round (or a column of weights for each category), and
# `advice = {{incumbent = "incumbent.csv"}}`, points that others proposed (an empty cell: none).

#
# How text is written in CSV files, where not with commas, points and UTF-8 (a file that does not
# fit is refused with what would fit), and whose clock dates without an offset were read from:
#
# [files]
# separator = ";"
# decimal = ","
# encoding = "cp1252"
# date_format = "%d.%m.%Y %H:%M"    # by default ISO, such as 2024-01-31T06:00
# timezone = "Europe/Berlin"    # such dates become UTC; by default they are taken as they stand


# The set, where the stream is no built-in problem (adversarial takes one too). A network
# (tidewolf new network writes one with data; docs/how-to/own-data.md):
#
# [set]
# kind = "Network"              # may be left out where there is a graph with ends, as here
# graph = "links.csv"           # an edge list with columns tail and head (or .graphml, .gml, or
#                               # pairs [["SEA", "DEN"], ...]); columns of tables are called
#                               # "SEA > DEN", or as the column name of the edge list says
# source = "SEA"                # or shares of several: {{SEA = 0.6, SFO = 0.4}}
# target = "NYC"
# demand = 1.0                  # how much is sent, in the unit of the capacities; what is decided,
#                               # and broken, are shares of it
# commodities = "pairs.csv"     # in place of these three, many: columns source, target, demand
# paths = "away"                # links that lead away from the source; "all": every link;
#                               # "k-shortest": tunnels
# k = 3                         # so many tunnels a commodity
# lengths = "km"                # the column of the edge list that says how long links are; they
#                               # tell which links lead away and which paths are short
# directed = true               # false: every link carries both ways; by default what the file
#                               # says, and an edge list is directed
#
# Or any other (tidewolf list), by its settings (tidewolf list CappedSimplex); n is as many as the
# costs have columns by default:
#
# [set]
# kind = "CappedSimplex"
# cap = 0.5
# total = 1.0
#
# A set made of sets has tables of its own, [set.K], or [[set.parts]] once for each part.


# The learners, by name (tidewolf list), with any of their settings (tidewolf list Ensemble).
# Where a file names none, the first two and Resolve, without who refuses the problem.

[[learners]]
name = "Ensemble"               # mixes descent at several steps, a season and other experts
experts = ["last"]              # what proposes decisions: "last" re-solves with the last round's
#                               # data; a number of rounds, or "1d" with times, with data that old;
#                               # or a name of [stream] advice
# season = 96                   # what comes again: so many rounds, or "1d" with times
# caution = 10.0                # more is more careful about limits
# calls_per_round = 1.0         # how often the set may be asked, on average

[[learners]]
name = "SinhaVaze"              # projects exactly

# [[learners]]
# name = "Resolve"              # re-solves with the last round's data, and nothing else; sets and
#                               # functions that make a linear program
#
# [[learners]]
# name = "LyapunovDescent"      # one descent alone, the plain learner
#
# [[learners]]
# name = "DriftPlusPenalty"     # the paper's three: this one sees whole functions ...
#
# [[learners]]
# name = "PrimalDual"           # ... this one gradients ...
#
# [[learners]]
# name = "BanditPrimalDual"     # ... and this one two numbers a round


# What `tidewolf sweep` runs through, one run for each combination: horizons in place of rounds,
# and any settings of the learners.
#
# [sweep]
# horizons = [500, 1000, 2000]
# caution = [1.0, 10.0, 100.0]
# calls_per_round = [1.0, 10.0]


# What comes of it.

[outputs]
# folder = "results"            # out by default; --out says otherwise
checkpoint_seconds = 10.0       # at most so much work is lost in a power cut: tidewolf resume
#                               # continues from the last checkpoint
# decisions = "both"            # none, csv, parquet or both; parquet by default, and csv beside it
#                               # up to a million cells
# smallest_path = 0.01          # paths with a smaller share go to the others in paths.csv
"""


def template(name: str, problem: str) -> str:
    """The file of an experiment of this name that begins with a built-in problem."""
    defaults = {
        key: setting.default
        for key, setting in problem_keys(problem).items()
        if read_plain(setting, setting.default) is not None
    }
    stream = to_toml({"problem": problem, **defaults})
    return _TEXT.format(
        name=name,
        format=FILE_FORMAT,
        quoted=to_toml({"name": name}).partition(" = ")[2].strip(),
        stream=stream,
    )
