"""Experiments: files that describe what to run, and folders that hold the results."""

from tidewolf.experiments.experiment import Experiment, Tables
from tidewolf.experiments.folder import RunFolder
from tidewolf.experiments.keys import Choice, load

__all__ = ["Choice", "Experiment", "RunFolder", "Tables", "load"]
