"""What work on torch's arrays would cost on a device, counted on any machine: looks at numbers,
copies from and to the host, passes over whole points, and arrays that are made where nobody said.

    with Traffic(entries=1_000_000) as traffic:
        next(rounds)
    traffic.reads, traffic.large_reads, traffic.homeless
"""

from collections import Counter
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

_READS = ("item", "__float__", "__int__", "__bool__", "__index__", "tolist", "cpu")
_FACTORIES = ("zeros", "ones", "empty", "full", "eye", "arange", "linspace", "rand", "randn")
_VIEWS = ("__get__", "reshape", "view", "__getitem__", "detach", "expand", "broadcast_to", "unbind")


class Traffic(TorchFunctionMode):
    """Counts while it is entered; points have so many `entries`."""

    def __init__(self, entries: int) -> None:
        super().__init__()
        self.entries = entries
        self.reads = self.writes = self.launches = self.products = 0
        self.large_reads = self.large_writes = 0
        """copies of whole points"""
        self.passes: Counter[str] = Counter()
        self.homeless: Counter[str] = Counter()
        """arrays made from nothing, or from the host's numbers, without a device being named"""

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs, name = kwargs or {}, getattr(function, "__name__", str(function))
        out = function(*args, **kwargs)
        if name in _READS:
            self.reads += 1
            self.large_reads += args[0].numel() >= self.entries
        elif name in ("asarray", "tensor", "as_tensor", "from_numpy"):
            if not isinstance(args[0], torch.Tensor):
                self.writes += 1
                self.large_writes += np.size(args[0]) >= self.entries
                self.homeless[name] += kwargs.get("device") is None
        elif name not in _VIEWS:
            made = out[0] if isinstance(out, tuple) and out else out
            if isinstance(made, torch.Tensor):
                self.launches += 1
                self._count(name, [*args, made], kwargs)
        return out

    def _count(self, name: str, arrays: list[Any], kwargs: dict[str, Any]) -> None:
        self.homeless[name] += name in _FACTORIES and kwargs.get("device") is None
        given = [part for part in arrays if isinstance(part, torch.Tensor)]
        if max((part.numel() for part in given), default=0) >= self.entries:
            self.passes[name] += 1
        first = {"matmul": 0, "addmv": 1, "addmv_": 1, "addmm": 1}.get(name)
        if first is not None and len(given) > first + 1:
            matrix, vectors = sorted(given[first : first + 2], key=lambda part: -part.numel())
            self.products += (
                matrix.ndim == 2
                and matrix.numel() == self.entries
                and min(matrix.shape) > 1
                and vectors.numel() <= 8 * max(matrix.shape)
            )

    @property
    def homes_missing(self) -> dict[str, int]:
        """Who made arrays without saying where."""
        return {name: count for name, count in self.homeless.items() if count}
