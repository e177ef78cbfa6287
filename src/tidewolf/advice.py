"""Points that others propose before a round: `tw.advice.Resolve`, and by name `tw.advice.Named`."""

from tidewolf.methods.advice import Adviser, Named, Proposals, Resolve

__all__ = ["Adviser", "Named", "Proposals", "Resolve"]
