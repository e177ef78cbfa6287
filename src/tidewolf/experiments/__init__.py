"""Experiments: files that describe what to run, and folders that hold the results."""

from tidewolf.experiments.experiment import Choice, Experiment, Tables, load
from tidewolf.experiments.folder import RunFolder

__all__ = ["Choice", "Experiment", "RunFolder", "Tables", "load"]
