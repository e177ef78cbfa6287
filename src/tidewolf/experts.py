"""What an `Ensemble` mixes beside its own descents.

Advisers propose points before a round: `tw.experts.Resolve`, and by name `tw.experts.Named`. A
context says what kind of round comes next: `tw.experts.Season`, `tw.experts.Categories`.
"""

from tidewolf.methods.advice import Adviser, Named, Proposals, Resolve
from tidewolf.methods.context import Categories, Context, Season

__all__ = ["Adviser", "Categories", "Context", "Named", "Proposals", "Resolve", "Season"]
