"""Experiments: files that say what to run, and folders that hold what came of it."""

from tidewolf.experiments.choice import Choice
from tidewolf.experiments.experiment import Experiment, Tables
from tidewolf.experiments.folder import RunFolder
from tidewolf.experiments.reading import load

__all__ = ["Choice", "Experiment", "RunFolder", "Tables", "load"]
