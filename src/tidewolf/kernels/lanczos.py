"""The largest eigenvalue of a symmetric matrix from a few products, and how far above what was
found it may still be.

Lanczos from b gives orthonormal q_1 = b/|b|, q_2, ... with A Q_k = Q_k T_k + beta_k q_{k+1} e_k',
T_k tridiagonal (alpha, beta). Its largest eigenvalue theta <= lambda_1 is the best Rayleigh
quotient in the space. All q are kept and orthogonalised twice. Where A lives on a device, so do the
q; T comes to the host when it is looked at, in one read.

A bound from above. Let mu be the measure with mass m_i = <u_i, q_1>^2 at each eigenvalue lambda_i.
The polynomials

    p_0 = 1,    beta_{j+1} p_{j+1}(z) = (z - alpha_{j+1}) p_j(z) - beta_j p_{j-1}(z)

are orthonormal for mu. With P(x) = sum_{j<=k} p_j(z) p_j(x):
    m_1 P(lambda_1)^2 <= integral of P^2 = P(z), at z = lambda_1:

    m_1  <=  1 / sum_{j<=k} p_j(lambda_1)^2.

Above theta every p_j, j <= k, grows; so once sum_j p_j(z)^2 >= 1/m for a z >= theta, lambda_1 <= z
unless m_1 < m. And m_1 is seldom small: for b = v + (sigma/sqrt n) g, v fixed, g standard normal,
<u_1, b> is normal with standard deviation sigma/sqrt n, and a normal variable lies within a of 0
with probability at most a sqrt(2n/pi)/sigma. So the bound fails with probability at most `failure`
for

    m = (failure sigma/|b|)^2 pi/(2n),

whatever v is: a warm start costs this bound log(1/sigma) and no more. It holds for every A that was
chosen without looking at g. A small residual |A x - theta x| would only say that some eigenvalue is
near theta. The bound is what a run has shown; Kuczynski & Wozniakowski (1992) say beforehand that
1.648 sqrt(n) exp(-(2k - 1) sqrt(eps)) bounds the chance of lambda_1 - theta > eps
(lambda_1 - lambda_n) for k products; of the order of log(n)/sqrt(eps) products cannot be avoided by
anything that sees A through products alone (Simchowitz, El Alaoui & Recht 2018). So a warm start,
which reaches a good theta in two or three, saves products where the proof comes from elsewhere.
scipy.sparse.linalg.eigsh takes less (4.4 against 11.4 ms at n = 1,000, without a warm start), but
states no error and knows no device.
"""

import math
import sys
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.arrays import (
    eps_of,
    inner,
    is_array,
    is_torch,
    less_rows,
    like,
    namespace,
    norm,
    read,
    to_numpy,
    with_diagonal,
    zeros,
)
from tidewolf.core.types import Array, Floats

# Rows of Q at first, and the longest T whose eigenvectors LAPACK's plain routine finds.
_FIRST, _SHORT = 16, 32
# T is looked at when there are this times as many products as the last time, and one more.
_PACE = 1.1
# How much of a warm start is random.
SIGMA = 0.03


class Start(NamedTuple):
    """A vector to start from, and the mass its measure has at the largest eigenvalue but for a
    chance of `failure`.
    """

    b: Array
    mass: float


class Found(NamedTuple):
    """A unit vector, its Rayleigh quotient, what the largest eigenvalue exceeds that by at most,
    and the products it took.
    """

    vector: Array
    value: float
    gap: float
    products: int


def start(noise: Array, v: Array | None, failure: float) -> Start:
    """v + (SIGMA/sqrt n) noise, or the noise alone; noise is standard normal, v has length 1."""
    n, sigma = noise.shape[0], 1.0 if v is None else SIGMA
    b = (sigma / math.sqrt(n)) * noise
    b = b if v is None else v + b
    return Start(b, (failure * sigma) ** 2 * math.pi / (2 * n * inner(b, b)))


def probable(A: Any, begin: Start, tolerance: float, floor: float = 0.0) -> Found | None:
    """Products until the bound from above is within `tolerance` |A|_2, as seen, of theta; None
    where rounding keeps it from getting there.

    A is an array or an operator (operators.py), |A|_2 between 1 and n or not much below.
    Eigenvalues below `floor` are as good as that.
    """
    space = Krylov(A, begin.b, floor)
    while True:
        theta, gap = space.grown(tolerance)
        if space.rules_out(theta + gap, begin.mass):
            break
        if space.exhausted:
            return None
    while gap > space.rounding and space.rules_out(theta + gap / 4.0, begin.mass):
        gap /= 4.0
    return Found(space.vector(), theta, gap + space.rounding, space.k)


def converged(
    A: Any, begin: Start, tolerance: float, floor: float = -math.inf, ahead: bool = False
) -> Found:
    """Products until theta seems closed; with `ahead` also where it will be, if it keeps rising
    as it did.

    No proof: a larger eigenvalue whose vector the start has little of may have been missed.
    """
    space = Krylov(A, begin.b, floor)
    while True:
        theta, gap = space.grown(tolerance)
        if space.exhausted or space.seems_converged(gap / 2.0, ahead):
            return Found(space.vector(), theta, gap + space.rounding, space.k)


def proved(A: Any, begin: Start, tolerance: float, floor: float = 0.0) -> Found | None:
    """The same with a proof, a Cholesky factor of (theta + gap) I - A; None if there is none."""
    found = converged(A, begin, tolerance, floor)
    slack = above(found.value + found.gap, A if is_array(A) else A.dense())
    return None if slack is None else found._replace(gap=found.gap + slack)


def above(z: float, A: Array) -> float | None:
    """What the largest eigenvalue of A exceeds z by at most; None if it seems to be above z.

    If the computed factorisation of B = z I - A runs through, B + E is positive semidefinite for
    some |E| <= (n + 2) eps tr(B). It is made in float64 where A lives, if its library can say so.
    """
    xp, n = namespace(A), int(A.shape[0])
    slack = 2.0 * (n + 2) * sys.float_info.epsilon * (n * z - float(xp.linalg.trace(A)))
    if is_torch(A):
        from torch.linalg import cholesky_ex

        failed = cholesky_ex(with_diagonal(-1.0 * xp.astype(A, xp.float64), z)).info
    else:
        from scipy.linalg.lapack import dpotrf

        B = np.negative(to_numpy(A), dtype=np.float64)
        np.einsum("ii->i", B)[:] += z
        failed = dpotrf(B.T, clean=0, overwrite_a=1)[1]
    return None if int(failed) else slack


class Krylov:
    def __init__(self, A: Any, b: Array, floor: float = 0.0) -> None:
        self.A, self.n, self.floor = A, int(b.shape[0]), floor
        self.rounding = (self.n + 16) * eps_of(b)
        self.alpha: list[float] = []
        self.beta: list[float] = []
        self.Q = zeros((min(self.n, _FIRST), self.n), b)
        self.following = b / norm(b)
        # at the last look, by how much it had risen since the one before, and by how much till then
        self.theta, self.rise, self._risen = -math.inf, math.inf, math.inf
        # of the latest products the two parts of alpha and beta^2, not read yet
        self._unread: list[Array] = []
        self.values: Floats = np.zeros(0)

    @property
    def k(self) -> int:
        return len(self.alpha) + len(self._unread) // 3

    @property
    def exhausted(self) -> bool:
        return self.k == self.n or (self.k > 0 and self.beta[-1] <= self.rounding)

    def grow(self) -> None:
        k = self.k
        if k == self.Q.shape[0]:
            self.Q = namespace(self.Q).concat([self.Q, self.Q])[: self.n, :]
        self.Q[k, :] = self.following
        Q, w = self.Q[: k + 1, :], self.A @ self.following
        h = Q @ w
        w = less_rows(w, h, Q)
        again = Q @ w
        w = less_rows(w, again, Q)
        if type(w) is not np.ndarray:
            square = w @ w
            self._unread += [h[k], again[k], square]
            self.following = w / namespace(w).sqrt(square)
            return
        length = norm(w)
        self.alpha.append(float(h[k]) + float(again[k]))
        self.beta.append(max(length, self.rounding))
        self.following = w / (length or 1.0)

    def grown(self, tolerance: float) -> tuple[float, float]:
        """Grows until it is time for another look at T: theta, and the gap above it that is aimed
        at.
        """
        for _ in range(1 + int((_PACE - 1.0) * self.k)):
            self.grow()
            if self.k == self.n or (not self._unread and self.exhausted):
                break
        self._look()
        self.values = tridiagonal_values(self.alpha, self.beta[:-1])
        theta = float(self.values[-1])
        self._risen, self.rise, self.theta = self.rise, theta - self.theta, theta
        return theta, max(tolerance * float(np.abs(self.values).max()), self.floor - theta)

    def _look(self) -> None:
        """T as far as it goes: behind a product that led nowhere new there is nothing."""
        if not self._unread:
            return
        numbers, self._unread = read(self._unread), []
        for first, again, square in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True):
            self.alpha.append(first + again)
            self.beta.append(max(math.sqrt(square), self.rounding))
            if self.beta[-1] == self.rounding:
                break

    def vector(self) -> Array:
        x = like(tridiagonal(self.alpha, self.beta[:-1])[1][:, -1], self.Q) @ self.Q[: self.k, :]
        return x / norm(x)

    def rules_out(self, z: float, mass: float) -> bool:
        """Whether no eigenvalue at or above z, which is above theta, can have this mass."""
        before, beta, p, total = 0.0, 0.0, 1.0, 1.0
        for a, b in zip(self.alpha, self.beta, strict=True):
            before, p, beta = p, ((z - a) * p - beta * before) / b, b
            total += p * p
            if total * mass >= 1.0:
                return True
        return False

    def seems_converged(self, gap: float, ahead: bool = False) -> bool:
        """Whether theta hardly rises, or, where one looks `ahead`, will hardly rise if it continues
        as it did, and is within `gap` of an eigenvalue by its residual and, squared, by its
        distance from the next.
        """
        if self.k == 1:
            return self.beta[-1] <= self.rounding
        rise = self.rise
        if ahead and 2.0 * rise < self._risen < math.inf:  # a geometric series
            rise = min(rise, rise * rise / (self._risen - rise))
        if rise > gap / 4.0:
            return False
        _, vectors = tridiagonal(self.alpha, self.beta[:-1], quick=True)
        residual = self.beta[-1] * abs(float(vectors[-1, -1]))
        apart = max(float(self.values[-1] - self.values[-2]), residual)
        return residual * min(1.0, residual / apart) <= gap


def tridiagonal_values(diagonal: list[float], beside: list[float]) -> Floats:
    """The eigenvalues of a symmetric tridiagonal matrix, the least first.

    Reference: `eigh` of the dense matrix, in tests/test_spectra.py.
    """
    from scipy.linalg.lapack import dsterf

    if len(diagonal) == 1:
        return np.array(diagonal)
    values, failed = dsterf(np.array(diagonal), np.array(beside))
    return tridiagonal(diagonal, beside)[0] if failed else values


def tridiagonal(
    diagonal: list[float], beside: list[float], quick: bool = False
) -> tuple[Floats, Floats]:
    """The eigenvalues of a symmetric tridiagonal matrix, the least first, and its eigenvectors as
    columns; `quick`: their signs do not matter.

    Reference: `eigh` of the dense matrix, in tests/test_spectra.py.
    """
    if len(diagonal) == 1:
        return np.array(diagonal), np.eye(1)
    if quick and len(diagonal) <= _SHORT:
        from scipy.linalg.lapack import dstev

        values, vectors, failed = dstev(np.array(diagonal), np.array(beside))
        if not failed:
            return values, vectors
    from scipy.linalg import eigh_tridiagonal

    values, vectors = eigh_tridiagonal(diagonal, beside)
    return values, vectors
