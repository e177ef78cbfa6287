"""Experiments: files that say what to run, and folders that hold what came of it."""

from tidewolf.experiments.experiment import Choice, Experiment, Tables, load
from tidewolf.experiments.folder import RunFolder

__all__ = ["Choice", "Experiment", "RunFolder", "Tables", "load"]
