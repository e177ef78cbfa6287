"""Advice: points that others propose before a round, each a member of an `Ensemble`."""

from tidewolf.methods.advice.base import Adviser, Proposals
from tidewolf.methods.advice.named import Named
from tidewolf.methods.advice.resolve import Resolve

__all__ = ["Adviser", "Named", "Proposals", "Resolve"]
