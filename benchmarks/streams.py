"""Mean loss and violation per round of the learners that `tidewolf run` plays, and of re-solving
with headroom: the first table of docs/benchmarks/index.md.
"""

from functools import partial

from benchmarks.pages import Table
from tidewolf.baselines import Resolve
from tidewolf.evaluation.run import run
from tidewolf.experiments import Experiment
from tidewolf.problems import named

STREAMS = ("routing", "abilene", "geant", "uunet", "freeway")
HEADROOM = (1.0, 2.0, 4.0)


def table() -> Table:
    """One row per learner, one column per stream."""
    found: dict[str, list[str]] = {}
    for name in STREAMS:
        problem = named(name)()
        experiment = Experiment.builtin(name).taken(problem)
        learners = {
            f"`{entrant.name}`": partial(experiment.learner, entrant, problem, 0)
            for entrant in experiment.entrants()
        } | {
            f"`Resolve`, headroom {h:g}": partial(Resolve, problem.K, headroom=h) for h in HEADROOM
        }
        for learner, make in learners.items():
            done = run(make(), problem.stream)
            cell = f"{done.losses.mean():.4g} / {done.violations.mean():.2g}"
            found.setdefault(learner, []).append(cell)
    rows = [(learner, *cells) for learner, cells in found.items()]
    return Table(("learner", *(f"`{name}`" for name in STREAMS)), rows)
