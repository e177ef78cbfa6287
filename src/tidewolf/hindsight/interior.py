"""A primal-dual interior-point method for linear programs over symmetric matrices.

    min <C, X>    with X psd, X <= cap (where there is one),
                  <A_i, X> = b_i for the first rows, <A_i, X> <= b_i for the others

With multipliers y, free for equations and >= 0 for the others, slacks s of the others, and V of the
cap, W = cap - X psd,

    C + sum_i y_i A_i - Z + V = 0,      X Z = W V = mu I,      s_i y_i = mu,      mu -> 0,

by Newton's method with Nesterov and Todd's (1997) scaling and Mehrotra's (1992) predictor and
corrector, separate steps for X and for the multipliers. With G the mean of X and the inverse of Z
(G Z G = X), and G_2 that of W and V, the change of X solves

    H dX + sum_i dy_i A_i = right side,      H dX = inv(G) dX inv(G) + inv(G_2) dX inv(G_2),

and T, which makes both terms diagonal, inverts it:  inv(H) Y = T (Theta o (T' Y T)) T', with Theta
1 without a cap, 1/(1 + w_i w_j) with one. So a turn costs one m x m system for m rows, of entries
<A_i, inv(H) A_j>, and some products of n x n matrices: the n^2 unknowns are never a system.

A row may give: <A_i, X> = b_i + give_i y_i in place of an equation is what the squared error
(<A_i, X> - b_i)^2/(2 give_i) among the costs leads to. It adds give_i to the diagonal of the
system, and steps for X and the multipliers are then the same.

Equations need not leave room for anything but a positive definite X; nothing that is found here is
believed (task.py).

Clarabel 0.11 factors a system of n (n + 1)/2 unknowns. It takes 1.0 s at n = 50 and 22 s and 1.4 GB
at n = 100, for n equations; this file 0.03 s and 0.08 s (one core, lower is better). It also leaves
1e-9 of the equations, this file 1e-16.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.types import Floats
from tidewolf.hindsight.task import positive

_ITERATIONS = 80
_ACCURACY = 1e-9
"""Where it ends: what is left of the equations above, of both kinds, and of the products."""
_BETTER, _IDLE = 0.9, 6
"""What this share of makes that less, and how many turns without end it."""
_REFINED = 3
"""How often a direction is refined."""
_BLOCK = 2**22
"""Numbers in a block of products, at most."""


class MatrixProgram(NamedTuple):
    """What is asked; sizes near 1 are best."""

    C: Floats
    """n x n, symmetric"""
    A: Any
    """sparse rows of flattened symmetric matrices, the equations, which are independent, first"""
    b: Floats
    give: Floats
    """one for each of the first rows: 0 for an equation"""
    cap: Floats | None
    """the diagonal of the cap"""
    start: Floats
    """positive definite, below the cap"""

    @property
    def equations(self) -> int:
        """How many the first rows are."""
        return len(self.give)


class MatrixSolution(NamedTuple):
    """A positive definite X below the cap, and multipliers."""

    X: Floats
    y: Floats


def solve_matrix_program(program: MatrixProgram) -> MatrixSolution:
    """Where the method got best; whether that is anything the caller has to see."""
    state, best = _starting_point(program), None
    least, idle = np.inf, 0
    for _ in range(_ITERATIONS):
        error = _error(program, state)
        if error < _BETTER * least:
            best, least, idle = state, error, 0
        else:
            idle += 1
        if best is None or error <= _ACCURACY or idle == _IDLE:
            break
        try:
            state = _predictor_corrector(program, state)
        except np.linalg.LinAlgError:  # a factor ran into rounding: nothing better will come
            break
    best = _starting_point(program) if best is None else best
    return MatrixSolution(best.X, best.y)


class _Pair(NamedTuple):
    """Two positive definite matrices in their common scaling: inv(R) X inv(R)' = R' Z R = d."""

    R: Floats
    back: Floats
    """the inverse of R"""
    d: Floats

    @classmethod
    def of(cls, X: Floats, Z: Floats) -> _Pair:
        L, M = np.linalg.cholesky(X), np.linalg.cholesky(Z)
        U, d, V = np.linalg.svd(M.T @ L)
        root = np.sqrt(d)
        return cls(L @ V.T / root, (M @ U / root).T, d)

    def primal(self, dX: Floats) -> Floats:
        return _symmetric(self.back @ dX @ self.back.T)

    def dual(self, dZ: Floats) -> Floats:
        return _symmetric(self.R.T @ dZ @ self.R)

    def target(self, mu: float, second: Floats | None) -> Floats:
        """The sum of both scaled changes with d o d + d o (their sum) + second = mu I, where
        o is the symmetric product."""
        right = mu * np.eye(len(self.d)) - np.diag(self.d**2)
        right = right if second is None else right - second
        return np.asarray(2.0 * right / (self.d[:, None] + self.d[None, :]))

    def unscaled(self, S: Floats) -> Floats:
        """A scaled matrix among the Z."""
        return np.asarray(self.back.T @ S @ self.back)

    def longest(self, scaled: Floats) -> float:
        """The step at which diag(d) + step * scaled is no more psd."""
        root = np.sqrt(self.d)
        least = float(np.linalg.eigvalsh(scaled / root[:, None] / root[None, :])[0])
        return np.inf if least >= 0.0 else -1.0 / least


class _State(NamedTuple):
    X: Floats
    Z: Floats
    V: Floats | None
    s: Floats
    y: Floats


class _Change(NamedTuple):
    """A direction, and its scaled parts: of X and Z, of W and V."""

    dX: Floats
    dZ: Floats
    dV: Floats | None
    ds: Floats
    dy: Floats
    low: tuple[Floats, Floats]
    high: tuple[Floats, Floats] | None


def _starting_point(program: MatrixProgram) -> _State:
    X, b = program.start, program.b[program.equations :]
    room = b - (program.A @ X.reshape(-1))[program.equations :]
    s = np.maximum(room, 0.1)
    unit = 1.0 / len(X)
    y = np.concatenate([np.zeros(program.equations), unit / s])
    Z = unit * np.asarray(np.linalg.inv(X), dtype=np.float64)
    if program.cap is None:
        return _State(X, _symmetric(Z), None, s, y)
    V = unit * np.asarray(np.linalg.inv(np.diag(program.cap) - X), dtype=np.float64)
    return _State(X, _symmetric(Z), _symmetric(V), s, y)


def _predictor_corrector(program: MatrixProgram, state: _State) -> _State:
    """A predictor and a corrector."""
    newton = _Newton(program, state)
    ahead = newton.change(0.0, None)
    primal, dual = newton.step_lengths(ahead, 1.0)
    after = _stepped(state, ahead, primal, dual)
    mu = _mu(program, state)
    share = min(1.0, max(0.0, _mu(program, after) / mu)) ** 3
    share = max(share, (1.0 - min(primal, dual)) ** 2 * 0.1)
    change = newton.change(share * mu, ahead)
    primal, dual = newton.step_lengths(change, 0.9 + 0.09 * min(primal, dual))
    return _stepped(state, change, primal, dual)


class _Newton:
    """The scaling and the system of a turn."""

    def __init__(self, program: MatrixProgram, state: _State) -> None:
        from scipy.linalg import cho_factor

        self.program, self.state = program, state
        self.low = _Pair.of(state.X, state.Z)
        self.high, self.theta, self.T = None, None, self.low.R
        if program.cap is not None and state.V is not None:
            self.high = _Pair.of(np.diag(program.cap) - state.X, state.V)
            across = self.high.back @ self.low.R
            w, Q = np.linalg.eigh(across.T @ across)
            self.T, self.theta = self.low.R @ Q, 1.0 / (1.0 + np.outer(w, w))
        k, e = len(program.b), program.equations
        lam = state.y[e:]
        M = self._products()
        self.give = np.concatenate([program.give, state.s / lam])
        M[np.arange(k), np.arange(k)] += self.give
        # rows that nearly depend on each other would end the method before they matter
        M[np.arange(k), np.arange(k)] *= 1.0 + 1e-15 * k
        if not (np.diagonal(M) > 0.0).all():
            raise np.linalg.LinAlgError("a row of the system is lost in rounding")
        self.scale = 1.0 / np.sqrt(np.diagonal(M))
        self.M = M * self.scale[:, None] * self.scale[None, :]
        self.factor = cho_factor(self.M, check_finite=False) if k else None
        self.left, self.dual_left = _residuals(program, state)

    def change(self, mu: float, ahead: _Change | None) -> _Change:
        """The direction to a point with this mu, with the second-order terms of `ahead`."""
        program, state, e = self.program, self.state, self.program.equations
        lam = state.y[e:]
        second = None if ahead is None else _symmetric(ahead.low[0] @ ahead.low[1])
        S = self.low.target(mu, second)
        B = self.low.unscaled(S) - self.dual_left
        S_2 = None
        if self.high is not None:
            high = None if ahead is None else ahead.high
            S_2 = self.high.target(mu, None if high is None else _symmetric(high[0] @ high[1]))
            B -= self.high.unscaled(S_2)
        slack = mu - state.s * lam - (0.0 if ahead is None else ahead.ds * ahead.dy[e:])
        right = program.A @ self._inverse(B).reshape(-1) + self.left
        right[e:] += slack / lam
        dy = self._solved(right)
        dX = self._inverse(B - (program.A.T @ dy).reshape(B.shape))
        for _ in range(_REFINED):  # inv(H) is large, and rounding takes much of A dX
            left = program.A @ dX.reshape(-1) - self.give * dy + self.left
            left[e:] += slack / lam
            more = self._solved(left)
            dy, dX = dy + more, dX - self._inverse((program.A.T @ more).reshape(B.shape))
        ds = (slack - state.s * dy[e:]) / lam
        dZ, dV, high = self.dual_left + (program.A.T @ dy).reshape(B.shape), None, None
        if self.high is not None and S_2 is not None:
            scaled = self.high.primal(-dX)
            high = (scaled, S_2 - scaled)
            dV = _symmetric(self.high.unscaled(S_2 - scaled))
            dZ = dZ + dV
        # S less the scaled dX is the same up to rounding, by which Z would leave its equation
        return _Change(
            dX, _symmetric(dZ), dV, ds, dy, (self.low.primal(dX), self.low.dual(dZ)), high
        )

    def step_lengths(self, change: _Change, share: float) -> tuple[float, float]:
        """How far X and the slacks may go, and the multipliers, given a share of the way out."""
        e = self.program.equations
        primal = min(self.low.longest(change.low[0]), _longest(self.state.s, change.ds))
        dual = min(self.low.longest(change.low[1]), _longest(self.state.y[e:], change.dy[e:]))
        if self.high is not None and change.high is not None:
            primal = min(primal, self.high.longest(change.high[0]))
            dual = min(dual, self.high.longest(change.high[1]))
        if self.program.give.any():
            primal = dual = min(primal, dual)
        return min(1.0, share * primal), min(1.0, share * dual)

    def _inverse(self, Y: Floats) -> Floats:
        """inv(H) Y."""
        inner = self.T.T @ Y @ self.T
        return _symmetric(self.T @ (inner if self.theta is None else self.theta * inner) @ self.T.T)

    def _solved(self, right: Floats) -> Floats:
        from scipy.linalg import cho_solve

        if self.factor is None:
            return right
        right = right * self.scale
        found = cho_solve(self.factor, right, check_finite=False)
        for _ in range(2):  # what rounding took from the factor
            found = found + cho_solve(self.factor, right - self.M @ found, check_finite=False)
        return np.asarray(found * self.scale)

    def _products(self) -> Floats:
        """<A_i, inv(H) A_j>."""
        A, n = self.program.A, len(self.T)
        k, entries = A.shape[0], A.nnz
        if k == 0:
            return np.zeros((0, 0))
        if self.theta is None and entries * entries <= k * n**3:
            return self._of_entries(A)
        M, block = np.empty((k, k)), max(1, _BLOCK // (n * n))
        for i in range(0, k, block):
            some = self.T.T @ A[i : i + block].toarray().reshape(-1, n, n) @ self.T
            some = some if self.theta is None else self.theta * some
            M[:, i : i + block] = A @ (self.T @ some @ self.T.T).reshape(-1, n * n).T
        return _symmetric(M)

    def _of_entries(self, A: Any) -> Floats:
        """The same without a cap, <A_i, G A_j G>, entry by entry, for rows with few."""
        n, k, G = len(self.T), A.shape[0], self.T @ self.T.T
        r, c, v = A.indices // n, A.indices % n, A.data
        row = np.repeat(np.arange(k), np.diff(A.indptr))
        M, step = np.zeros((k, k)), max(1, _BLOCK // max(1, len(v)))
        for a in range(0, len(v), step):
            part = slice(a, a + step)
            terms = G[r[part]][:, r] * G[c[part]][:, c] * v[part, None] * v
            terms = np.add.reduceat(terms, A.indptr[:-1], axis=1)
            np.add.at(M, row[part], terms)
        return _symmetric(M)


def _stepped(state: _State, change: _Change, primal: float, dual: float) -> _State:
    V = None if state.V is None or change.dV is None else state.V + dual * change.dV
    return _State(
        state.X + primal * change.dX,
        state.Z + dual * change.dZ,
        V,
        state.s + primal * change.ds,
        state.y + dual * change.dy,
    )


def _mu(program: MatrixProgram, state: _State) -> float:
    """The mean of all products that are to become 0."""
    lam = state.y[program.equations :]
    total = float((state.X * state.Z).sum()) + float(state.s @ lam)
    count = len(state.X) + len(lam)
    if program.cap is not None and state.V is not None:
        total += float(((np.diag(program.cap) - state.X) * state.V).sum())
        count += len(state.X)
    return total / count


def _residuals(program: MatrixProgram, state: _State) -> tuple[Floats, Floats]:
    """What is left of A X = b, slacks counted, and of the equation of multipliers."""
    left = program.A @ state.X.reshape(-1) - program.b
    left -= np.concatenate([program.give * state.y[: program.equations], -state.s])
    dual = program.C + (program.A.T @ state.y).reshape(state.X.shape) - state.Z
    return left, dual if state.V is None else dual + state.V


def _error(program: MatrixProgram, state: _State) -> float:
    """The largest of what is left, against the sizes of X, which is 1, multipliers and costs."""
    left, dual = _residuals(program, state)
    unit = float(positive(np.linalg.norm(program.C))) / len(program.C)
    squares = 0.5 * float(program.give @ state.y[: program.equations] ** 2)
    cost = max(abs(float((program.C * state.X).sum()) + squares), unit)
    size = unit + float(np.abs(state.y).max(initial=0.0))
    gap = _mu(program, state) * len(program.C) / cost
    error = max(float(np.abs(left).max(initial=0.0)), float(np.abs(dual).max()) / size, gap)
    return error if np.isfinite(error) else np.inf


def _longest(at: Floats, way: Floats) -> float:
    """The step at which a positive vector is no more >= 0."""
    down = way < 0.0
    return float(np.min(-at[down] / way[down])) if down.any() else np.inf


def _symmetric(X: Floats) -> Floats:
    return np.asarray(0.5 * (X + X.T))
