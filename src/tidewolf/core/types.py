"""Types that many files share."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = Any
"""An array of NumPy, torch, CuPy or any library that array-api-compat knows."""
Shape: TypeAlias = tuple[int, ...]
"""The shape of a point: one length an axis."""
NDArray: TypeAlias = np.ndarray[Any, Any]
"""A NumPy array of any dtype."""
Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
"""A NumPy array of 64-bit floating-point numbers."""
Int32s: TypeAlias = np.ndarray[Any, np.dtype[np.int32]]
"""A NumPy array of 32-bit whole numbers: places in arrays, ends of arcs."""
Int64s: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
"""A NumPy array of 64-bit whole numbers: counts and rounds."""
Bools: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
"""A NumPy array of truth values."""
Link: TypeAlias = tuple[Hashable, Hashable]
"""A link of a network: (tail, head), of any hashable names."""
Lengths: TypeAlias = Sequence[float] | Floats
"""A length for each of a list of links."""
