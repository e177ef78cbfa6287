"""Types that many files share."""

from collections.abc import Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np

# An array of NumPy, torch, CuPy or any library that array-api-compat knows.
Array: TypeAlias = Any
# The shape of a point: one length an axis.
Shape: TypeAlias = tuple[int, ...]
# A NumPy array of any dtype.
NDArray: TypeAlias = np.ndarray[Any, Any]
# A NumPy array of 64-bit floating-point numbers.
Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
# A NumPy array of 32-bit whole numbers: places in arrays, ends of arcs.
Int32s: TypeAlias = np.ndarray[Any, np.dtype[np.int32]]
# A NumPy array of 64-bit whole numbers: counts and rounds.
Int64s: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
# A NumPy array of truth values.
Bools: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
# A link of a network: (tail, head), of any hashable names.
Link: TypeAlias = tuple[Hashable, Hashable]
# A length for each of a list of links.
Lengths: TypeAlias = Sequence[float] | Floats
