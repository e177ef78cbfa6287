"""What kind of round comes next, as weights of a few cells: a season, or categories.

A learner with a context keeps a point for every cell and plays their mix, so it competes with the
best policy, not with the best point (docs/theory/method.md). A context of one's own is a frozen
dataclass that derives from `Context`.
"""

from tidewolf.methods.context.base import Context
from tidewolf.methods.context.categories import Categories
from tidewolf.methods.context.season import Season

__all__ = ["Categories", "Context", "Season"]
