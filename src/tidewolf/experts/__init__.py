"""What an `Ensemble` mixes beside its own descents.

Advisers propose points before a round: `Resolve`, `Leader`, `Static`, and by name `Named`. A
context says what kind of round comes next, as weights of a few cells: `Season`, `Categories`. A
learner with a context keeps a point for every cell and plays their mix, so it competes with the
best policy (docs/theory/method.md).
"""

from tidewolf.experts.base import Adviser, Proposals
from tidewolf.experts.context import Categories, Context, Season
from tidewolf.experts.leader import Leader
from tidewolf.experts.named import Named, Static
from tidewolf.experts.resolve import Resolve

__all__ = [
    "Adviser", "Categories", "Context", "Leader", "Named", "Proposals", "Resolve", "Season",
    "Static",
]  # fmt: skip
