"""What kind of round comes next, known before it: `tw.context.Season`, `tw.context.Categories`."""

from tidewolf.methods.context import Categories, Context, Season

__all__ = ["Categories", "Context", "Season"]
