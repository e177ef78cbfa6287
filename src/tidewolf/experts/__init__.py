"""What an `Ensemble` mixes beside its own descents.

Advisers propose points before a round: `Resolve`, `Leader`, `Static`, and by name `Named`. A
context says what kind of round comes next, as weights of a few cells: `Season`, `Categories`. A
learner with a context keeps a point for every cell and plays their mix, so it competes with the
best policy (docs/theory/method.md). `Restarts` are descents that begin anew from time to time.
"""

from tidewolf.experts.base import Adviser, Proposals
from tidewolf.experts.context import Categories, Context, Season
from tidewolf.experts.leader import Leader
from tidewolf.experts.named import Named, Static
from tidewolf.experts.resolve import Resolve
from tidewolf.experts.restarts import Restarts

__all__ = [
    "Adviser", "Categories", "Context", "Leader", "Named", "Proposals", "Resolve", "Restarts",
    "Season", "Static",
]  # fmt: skip
