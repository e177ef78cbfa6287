"""Arrays of any library: checked on the way in, frozen on the way out.

A point is an array of any shape; <a, b> is the sum of products and the norm is Frobenius. NumPy
arrays take a fast path;
torch, CuPy and the rest go through array-api-compat. Small scalars cross to Python floats at once.
"""

import math
import operator
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np

from tidewolf.core.arguments import shown
from tidewolf.core.errors import InvalidInput, NotFinite, TidewolfError, WrongShape, WrongType
from tidewolf.core.frames import is_table, numbers_of
from tidewolf.core.types import Array, NDArray, Shape

# A kind of array.
A = TypeVar("A")
# The largest whole number that arrays, tables and files hold.
LARGEST_COUNT = 2**63 - 1
# As many bits as `secrets.randbits(128)` gives; tables and experiment files take seeds up to
# LARGEST_COUNT.
LARGEST_SEED = 2**128 - 1
# The most entries that a point has: sparse vertices count them in 32 bits.
MOST_ENTRIES = 2**31 - 1
# The longest side of a square matrix with so many.
MOST_SIDE = math.isqrt(MOST_ENTRIES)


def namespace(x: Array) -> Any:
    if type(x) is np.ndarray:
        return np
    found = _NAMESPACES.get(type(x))
    if found is None:
        from array_api_compat import array_namespace

        found = _NAMESPACES[type(x)] = array_namespace(x)
    return found


# of kinds of arrays met so far
_NAMESPACES: dict[type, Any] = {}


def is_torch(x: Array) -> bool:
    """Whether `x` is a tensor of torch, whose types of numbers take long to ask about."""
    return type(x).__module__.partition(".")[0] == "torch"


def is_array(x: object) -> bool:
    """Whether `x` is an array of a library we can compute with; one with a mask is not, for
    computing forgets the mask.
    """
    if type(x) is np.ndarray:
        return True
    from array_api_compat import is_array_api_obj

    return bool(is_array_api_obj(x)) and not isinstance(x, np.ma.MaskedArray)


def as_array(x: object, what: str) -> Array:
    """`x` as a finite floating-point array: arrays stay where they are, lists and integers are
    promoted; of a table of pandas or polars, its numbers.
    """
    array = as_numbers(x, what)
    require_finite(array, what)
    return array


def as_numbers(x: object, what: str) -> Array:
    if type(x) is not np.ndarray:
        require_no_mask(x, what)
    if not is_array(x):
        try:
            x = numbers_of(x, what) if is_table(x) else np.asarray(x)
        except TidewolfError:
            raise
        except (ValueError, TypeError):
            raise WrongType(f"{what} must be an array of numbers: rows of one length.") from None
    return _floating(x, what)


def as_point(x: object, shape: Shape, what: str) -> Array:
    point = as_array(x, what)
    if tuple(point.shape) != shape:
        raise WrongShape(f"{what} must have shape {shape}, not {tuple(point.shape)}.")
    return point


def as_direction(x: object, shape: Shape, what: str = "The direction") -> Array:
    """`as_point` where something is wrong with x; a floating array of the right shape passes at
    once, its entries unseen.
    """
    if type(x) is np.ndarray:
        if x.shape == shape and (x.dtype is _DOUBLE or x.dtype is _SINGLE):
            return x
    elif not isinstance(x, np.ndarray) and is_array(x):
        array: Array = x
        if tuple(array.shape) == shape:
            return _floating(array, what)
    return as_point(x, shape, what)


def as_own(x: object, what: str) -> Array:
    """`as_array(x)` as a read-only copy, so that no caller can change it."""
    x = as_array(x, what)
    return frozen(namespace(x).asarray(x, copy=True))


def as_number(
    x: object,
    what: str,
    *,
    above: float = -math.inf,
    least: float = -math.inf,
    most: float = math.inf,
) -> float:
    if type(x) is float and above < x < math.inf and least <= x <= most:
        return x
    require_no_mask(x, what)
    number = math.nan
    with suppress(TypeError, ValueError):
        try:
            number = math.nan if _no_number(x) else float(x)  # type: ignore[arg-type]
        except OverflowError:
            number = math.inf
    if math.isnan(number) and not isinstance(x, float | np.floating):
        raise WrongType(f"{what} must be a number, not {shown(x)}.")
    if not math.isfinite(number):
        raise NotFinite(f"{what} must be a finite number of moderate size, not {shown(x)}.")
    if number <= above or not least <= number <= most:
        bound = f"at least {least:g}" if number < least else f"at most {most:g}"
        bound = f"greater than {above:g}" if number <= above else bound
        raise InvalidInput(f"{what} must be {bound}, not {number:g}.")
    return number


def as_count(x: object, what: str, *, least: int = 1, most: int = LARGEST_COUNT) -> int:
    """`x` as a whole number from `least` to `most`, every digit kept; a float that is one is
    accepted up to 2^53.
    """
    count = None
    with suppress(TypeError, ValueError, RuntimeError):  # floats, and arrays that are no number
        count = None if _no_number(x) else operator.index(x)  # type: ignore[arg-type]
    # of those too large for a float as_number speaks
    if count is None or count.bit_length() > 1023:
        number = as_number(x, what)
        count = int(number)
        if number != count or (least <= count <= most and abs(count) > 2**53):
            kind = "an int" if number == count else "a whole number"
            raise InvalidInput(f"{what} must be {kind}, not the float {number:g}.")
    if not least <= count <= most:
        bound = f"least {least}" if count < least else f"most {most}"
        raise InvalidInput(f"{what} must be at {bound}, not {shown(count)}.")
    return count


def require_finite(x: Array, what: str) -> None:
    if type(x) is np.ndarray and np.logical_and.reduce(np.isfinite(x), axis=None):
        return
    xp = namespace(x)
    finite = xp.isfinite(x)
    if bool(xp.all(finite)):
        return
    flat = np.asarray(to_numpy(finite)).reshape(-1)
    first = tuple(int(i) for i in np.unravel_index(int(np.argmin(flat)), tuple(x.shape)))
    place = first if len(first) != 1 else first[0]
    raise NotFinite(f"{what} holds {float(x[first])} at {place}; every entry must be finite.")


def require_no_mask(x: object, what: str) -> None:
    if isinstance(x, np.ma.MaskedArray):
        raise WrongType(f"{what}: a masked array was given; fill it with x.filled(value).")
    if isinstance(x, list | tuple):
        for item in x:
            if isinstance(item, list | tuple | np.ma.MaskedArray):
                require_no_mask(item, what)


def to_numpy(x: Array) -> NDArray:
    if type(x) is np.ndarray:
        return x
    if is_torch(x):
        return np.asarray(x.detach().cpu())
    from array_api_compat import to_device

    try:
        return np.asarray(x)
    except (TypeError, RuntimeError):
        return np.asarray(to_device(x, "cpu"))


def like(x: Array, reference: Array) -> Array:
    if type(reference) is np.ndarray:
        return np.asarray(to_numpy(x), dtype=reference.dtype)
    if type(x) is np.ndarray and not x.flags.writeable:
        x = x.copy()
    same = type(x) is type(reference) and x.dtype == reference.dtype
    if same and device_of(x) == device_of(reference):
        return x
    return placed(x, reference, reference.dtype)


def frozen(x: A) -> A:
    if type(x) is np.ndarray:
        x.setflags(False)  # type: ignore[attr-defined]  # by keyword it takes twice as long
    return x


def taken(x: Array, rows: Any) -> Array:
    return x[rows] if type(x) is np.ndarray else namespace(x).take(x, placed(rows, x), axis=0)


def placed(numbers: Any, reference: Array, dtype: Any = None) -> Array:
    """An array in the library and device of `reference`, and in its own dtype if None is given."""
    if type(numbers) is np.ndarray and not numbers.flags.writeable:
        numbers = numbers.copy()
    return namespace(reference).asarray(numbers, dtype=dtype, device=device_of(reference))


def device_of(x: Array) -> Any:
    if is_torch(x):  # asked many times a round
        return x.device
    from array_api_compat import device

    return device(x)


def device_name(x: Array) -> str:
    return "cpu" if type(x) is np.ndarray else str(device_of(x))


def flat(x: Array) -> Array:
    if x.ndim == 1:
        return x
    return x.reshape(-1) if type(x) is np.ndarray else namespace(x).reshape(x, (-1,))


def pieces(x: Array, shapes: Sequence[Shape]) -> Iterator[Array]:
    xp, start = namespace(x), 0
    for shape in shapes:
        stop = start + math.prod(shape)
        yield xp.reshape(x[start:stop], shape)
        start = stop


def end_to_end(parts: Sequence[Array]) -> Array:
    return namespace(parts[0]).concat([flat(part) for part in parts])


def inner(a: Array, b: Array) -> float:
    return float(a.dot(b)) if type(a) is np.ndarray and a.ndim == 1 else float(flat(a) @ flat(b))


def inner_products(*pairs: tuple[Array, Array]) -> tuple[float, ...]:
    """<a, b> of each pair, read together: on a device a look costs as much as many sums."""
    if type(pairs[0][0]) is np.ndarray:
        return tuple(inner(a, b) for a, b in pairs)
    return read([flat(a) @ flat(b) for a, b in pairs])


def read(scalars: Sequence[Array]) -> tuple[float, ...]:
    return tuple(map(float, to_numpy(namespace(scalars[0]).stack(list(scalars))).tolist()))


def plus(y: Array, factor: float, x: Array) -> Array:
    """y + factor x; in one pass where the library has one for that."""
    return y.add(x, alpha=factor) if type(y) is not np.ndarray and is_torch(y) else y + factor * x


def times_less(A: Any, X: Array, Y: Array) -> Array:
    """A X - Y; in one pass where the library has one for that."""
    return Y.addmm(A, X, beta=-1.0) if is_torch(A) else A @ X - Y


def less_rows(w: Array, h: Array, Q: Array) -> Array:
    """w - h Q; in one pass where the library has one for that."""
    return w.addmv(Q.T, h, alpha=-1.0) if is_torch(w) else w - h @ Q


def with_diagonal(x: Array, number: float) -> Array:
    """x + number I for a square matrix that is the caller's own, in place if it can be."""
    if number == 0.0:
        return x
    entries = flat(x)
    entries[:: x.shape[0] + 1] += number
    return namespace(x).reshape(entries, tuple(x.shape))


def padded(array: Any, *sides: int) -> Any:
    """An array of NumPy with zeros behind its entries along each axis."""
    larger = np.zeros(sides, array.dtype)
    larger[tuple(map(slice, array.shape))] = array
    return larger


def zeros(shape: Shape, reference: Array) -> Array:
    return _array_like("zeros", reference, shape)


def ones(count: int, reference: Array) -> Array:
    return _array_like("ones", reference, count)


def standard_normal(rng: np.random.Generator, shape: Shape, reference: Array) -> Array:
    """Made where `reference` lives if its library can, since to bring many there takes long."""
    if not is_torch(reference):
        return like(rng.standard_normal(shape), reference)
    import torch

    there = torch.Generator(reference.device).manual_seed(int(rng.integers(2**62)))
    return torch.randn(shape, generator=there, dtype=reference.dtype, device=reference.device)


def _array_like(name: str, reference: Array, *args: Any) -> Array:
    if type(reference) is np.ndarray:
        return getattr(np, name)(*args, dtype=reference.dtype)
    make = getattr(namespace(reference), name)
    return make(*args, dtype=reference.dtype, device=device_of(reference))


class _Silence(threading.local):
    """`with SILENCE:` lets no floating-point warning of NumPy's out; within another it costs next
    to nothing.
    """

    depth = 0

    def __enter__(self) -> None:
        if self.depth == 0:
            self.errors = np.errstate(over="ignore", invalid="ignore")
            self.errors.__enter__()
        self.depth += 1

    def __exit__(self, *error: Any) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.errors.__exit__(*error)


# Silences NumPy where values may overflow or be NaN and the caller checks for that.
SILENCE = _Silence()


def total(x: Array) -> float:
    if type(x) is np.ndarray:
        return float(np.add.reduce(x, axis=None))
    return float(namespace(x).sum(x))


def mean_there(x: Array) -> Any:
    """The mean of all entries, for computing on with them: unread, where reading takes time."""
    return total(x) / x.size if type(x) is np.ndarray else namespace(x).mean(x)


def norm(x: Array) -> float:
    norm2, (least, most) = square(x), square_range(x)
    return math.sqrt(norm2) if least * least <= norm2 <= most * most else length(x)


def unit(x: Array) -> Array:
    """x / |x| for a vector of moderate size, its norm unread."""
    return x / namespace(x).sqrt(x @ x)


def length(x: Array) -> float:
    """`norm(x)` without overflow or underflow on the way."""
    xp = namespace(x)
    largest = float(xp.max(xp.abs(x))) if math.prod(x.shape) else 0.0
    if not 0.0 < largest < math.inf:
        return largest
    x = x / largest
    return largest * math.sqrt(inner(x, x))


def square(x: Array) -> float:
    """|x|^2, without a warning if it is infinite or NaN: the caller checks."""
    # of NumPy's products `vdot` is the silent one
    return float(np.vdot(x, x)) if type(x) is np.ndarray else inner(x, x)


def square_range(x: Array) -> tuple[float, float]:
    return (LEAST, MOST) if eps_of(x) < 1e-10 else (1e-17, 1e17)


# The same for what is computed in float64 whatever a set is made of.
LEAST, MOST = 1e-140, 1e140


def power_of_two(sizes: Any) -> Any:
    """The largest power of two up to each size, 1 for 0: dividing by it rounds nothing.

    Solvers have absolute tolerances, and HiGHS takes coefficients below 1e-9 for 0.
    """
    return np.ldexp(1.0, np.frexp(np.where(sizes > 0.0, sizes, 1.0))[1] - 1)


def eps_of(x: Array) -> float:
    if type(x) is not np.ndarray and not is_torch(x):  # whose types are comparable
        return float(namespace(x).finfo(x.dtype).eps)
    if x.dtype not in _EPS:
        _EPS[x.dtype] = float(namespace(x).finfo(x.dtype).eps)
    return _EPS[x.dtype]


_DOUBLE, _SINGLE = np.dtype(np.float64), np.dtype(np.float32)
_EPS: dict[Any, float] = {kind: float(np.finfo(kind).eps) for kind in (_DOUBLE, _SINGLE)}


def _no_number(x: object) -> bool:
    if isinstance(x, np.ndarray):
        return type(x) is not np.ndarray or x.ndim > 0 or x.dtype.kind not in "iuf"
    return isinstance(x, _NO_NUMBERS)


_DATES = np.datetime64 | np.timedelta64
_NO_NUMBERS = bool | np.bool_ | str | bytes | bytearray | complex | np.complexfloating | _DATES


def _floating(x: Array, what: str) -> Array:
    if type(x) is np.ndarray:
        if x.dtype == _DOUBLE or x.dtype == _SINGLE:
            return x
        # halves, long doubles and foreign byte orders are promoted too: no solver takes them
        if x.dtype.kind in "iubf":
            return x.astype(np.float64)
    else:
        xp = namespace(x)
        if (is_torch(x) and x.dtype in _EPS) or xp.isdtype(x.dtype, "real floating"):
            return x
        if xp.isdtype(x.dtype, ("integral", "bool")):
            return xp.astype(x, xp.float64)
    raise WrongType(f"{what} must be an array of real numbers, not of dtype {x.dtype}.")
