"""Advisers: each proposes points before a round, and each point is an expert of an `Ensemble`."""

from tidewolf.methods.advice.base import Adviser, Proposals
from tidewolf.methods.advice.named import Named
from tidewolf.methods.advice.resolve import Resolve

__all__ = ["Adviser", "Named", "Proposals", "Resolve"]
