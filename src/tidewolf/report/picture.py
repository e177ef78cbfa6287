"""A matplotlib Figure that a notebook shows as it is.

IPython shows a Figure only once pyplot, or `%matplotlib inline`, has told it how. A picture made
without pyplot's global state has to say it itself: `_repr_png_` is what IPython asks an object for
if pyplot is not loaded.
"""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class Picture(Figure):
    """A Figure, and the PNG it is shown as; the same bytes for the same data."""

    def _repr_png_(self) -> bytes:
        """The picture as the bytes of a PNG, for notebooks."""
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=110, metadata={"Software": None})
        return buffer.getvalue()
