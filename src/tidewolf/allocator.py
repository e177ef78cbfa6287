"""Money, or anything else that is split into shares, allocated row after row, as scikit-learn has
estimators and skfolio portfolios.

    x_t    weights before row t, in K = { lower <= x <= upper, sum x = 1, groups within limits }
    r_t    the returns of row t, shown after x_t is decided
    f_t    -log(1 + <r_t, x>)   ("log_wealth"),   or   -<r_t, x>   ("linear")
    g_t    max( -<r_t, x>/max_loss - 1,  sum_{i in group} x_i - limit_t )       soft, on average

What holds always is hard: weights and static limits of groups are in K. What only shows itself
afterwards is soft: the loss of a row, and limits that move. `tw.play` does the work.

skfolio takes only its own optimisers for portfolios: `BaseOptimization.register` makes an allocator
one of them, when the first is made, where skfolio is installed.
"""

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any, Self, TypeAlias, cast

import numpy as np

from tidewolf.core import arrays, batch, errors, frames
from tidewolf.core.arguments import as_kind, did_you_mean, import_extra, listed, shown
from tidewolf.core.settings import Text
from tidewolf.core.types import Floats
from tidewolf.evaluation.metrics import Experts
from tidewolf.experts import Static
from tidewolf.functions import linear, smooth
from tidewolf.learners.ensemble import Ensemble
from tidewolf.loop import play
from tidewolf.methods import base, capabilities
from tidewolf.session import Session
from tidewolf.sets.base import ConvexSet
from tidewolf.sets.generic import Polytope
from tidewolf.sets.simplices import CappedSimplex, Simplex

try:
    from sklearn.base import BaseEstimator
except ImportError:
    BaseEstimator = object

LOSSES = ("log_wealth", "linear")
_ROUNDING = 1e-9


class _Estimator(BaseEstimator):  # type: ignore[misc]  # of a library without types
    def __new__(cls, *_: Any, **__: Any) -> Self:
        if BaseEstimator is object:
            import_extra("sklearn.base", "OnlineAllocator", "sklearn")
        if find_spec("skfolio") is not None:
            from skfolio.optimization import BaseOptimization

            BaseOptimization.register(cls)
        return cast(Self, super().__new__(cls))


# The loss, the largest loss, and the members of each group, 1 for those in it.
_Rule: TypeAlias = tuple[str, float | None, dict[str, Floats]]


class OnlineAllocator(_Estimator):
    """Decide portfolio weights row by row: a scikit-learn estimator that works in skfolio's
    pipelines.

    `fit` starts over, `partial_fit` continues; both decide before a row is revealed, so
    `weights_history_` is what would have been held, and `weights_` is for the next row. Settings
    are read by `fit`, or by the first `partial_fit`. `predict` and `score` need skfolio and hold
    `weights_` fixed over their rows; split rows by `TimeSeriesSplit`.

    Parameters
    ----------
    min_weights : float, mapping or array, default 0.0
        The least weight of each asset: one number, one per asset, or by name (others 0).
    max_weights : float, mapping or array, default 1.0
        The largest weight of each asset: one number, one per asset, or by name (others 1).
    groups : mapping or sequence, optional
        The group of each asset, or several: by name, or one for each column. Assets that a
        mapping names and the table lacks are left out, so that columns may be selected before.
    group_limits : mapping, optional
        The largest weight of groups, {group: most}, or an interval, {group: (least, most)}; hard
        constraints.
    max_loss : float, optional
        The largest loss per row, as a share of wealth: a soft constraint, satisfied on average.
    loss : str, default "log_wealth"
        The loss: "log_wealth" for minus the logarithm of growth, or "linear" for minus the return.
    caution : float, default 10.0
        The weight of soft constraints against the loss.
    max_move : float, optional
        The largest move of the weights from row to row, as half the sum of all absolute changes.
        None: no cap.
    learner : callable, optional
        A function of the set of weights that returns a learner, such as `tw.LyapunovDescent`. None:
        an `Ensemble` with this caution and `experts.Static()`.
    portfolio_params : dict, optional
        Settings of the portfolios that `predict` makes, as skfolio's optimisers take them.
    previous_weights : float, mapping or array, optional
        The current weights, from which those portfolios compute turnover and costs.

    Attributes
    ----------
    weights_ : array
        The weights for the next row.
    weights_history_ : array
        What was decided before each row of the last call.
    wealth_ : float
        The final wealth of one unit invested at the start.
    n_rounds_ : int
        Rows seen so far.
    session_ : Session
        The session that runs the learner.
    proved_ : Bound
        Upper bound on the loss to the best fixed weights so far.
    experts_ : Experts
        The experts of the learner, with a bound on what was lost to each, in loss plus weighted
        violation.
    n_features_in_ : int
        How many assets there are.
    feature_names_in_ : array
        The names of the assets, if the table has them.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = 0.01 * rng.standard_normal((60, 4)) + [0.0, 0.001, 0.002, 0.004]
    >>> allocator = tw.OnlineAllocator(
    ...     max_weights=0.5, groups=["a", "a", "b", "b"], group_limits={"b": 0.8}
    ... )
    >>> allocator.fit(X[:40]).partial_fit(X[40:]).n_rounds_
    60
    >>> w = allocator.weights_
    >>> bool(w.max() <= 0.5 + 1e-9), bool(w[2:].sum() <= 0.8 + 1e-9), float(w.sum().round(9))
    (True, True, 1.0)
    """

    session_: Session[Any]
    wealth_: float
    _rule: _Rule

    def __init__(
        self,
        *,
        min_weights: Any = 0.0,
        max_weights: Any = 1.0,
        groups: Any = None,
        group_limits: Mapping[str, Any] | None = None,
        max_loss: float | None = None,
        loss: str = "log_wealth",
        caution: float = 10.0,
        max_move: float | None = None,
        learner: Callable[[ConvexSet], base.Learner[Any]] | None = None,
        portfolio_params: dict[str, Any] | None = None,
        previous_weights: Any = None,
    ) -> None:
        self.min_weights = min_weights
        self.max_weights = max_weights
        self.groups = groups
        self.group_limits = group_limits
        self.max_loss = max_loss
        self.loss = loss
        self.caution = caution
        self.max_move = max_move
        self.learner = learner
        self.portfolio_params = portfolio_params
        self.previous_weights = previous_weights

    # ---------------------------------------------------------------- learning

    def fit(self, X: Any, y: Any = None, limits: Any = None) -> Self:
        """Start over and learn from these rows.

        Parameters
        ----------
        X : array or DataFrame
            Returns, such as 0.01 for one percent: one row per round, oldest first; one column per
            asset.
        y : None
            Ignored; present for compatibility with scikit-learn.
        limits : DataFrame or mapping, optional
            Time-varying upper limits of groups or assets, by name, one value per row. They are
            soft: each is revealed after its row is decided.

        Returns
        -------
        OnlineAllocator
            Itself.
        """
        return self._learn(X, limits, anew=True)

    def partial_fit(self, X: Any, y: Any = None, limits: Any = None) -> Self:
        """Continue with new rows; do not give those of earlier calls again.

        Parameters
        ----------
        X : array or DataFrame
            Returns, a row per round, oldest first.
        y : None
            Ignored; present for compatibility with scikit-learn.
        limits : DataFrame or mapping, optional
            Time-varying limits, as in `fit`.

        Returns
        -------
        OnlineAllocator
            Itself.
        """
        return self._learn(X, limits, anew=not hasattr(self, "session_"))

    def _learn(self, X: Any, limits: Any, *, anew: bool) -> Self:
        from sklearn.utils.validation import validate_data

        returns = validate_data(self, _as_pandas(X), dtype=np.float64, reset=anew)
        names, count = getattr(self, "feature_names_in_", None), returns.shape[1]
        assets = tuple(f"x{i}" for i in range(count)) if names is None else tuple(map(str, names))
        session, rule = self._begin(assets) if anew else (self.session_, self._rule)
        losses = _losses(rule[0], returns, assets)
        constraints: Any = _limits(returns, rule, limits, assets)
        history, state = np.empty_like(returns), session.state
        for t, played in enumerate(play(session.learner, batch.Stream(losses, constraints), state)):
            history[t], state = played.x, played.state
        wealth = 1.0 if anew else self.wealth_
        self.session_, self._rule = Session(session.learner, state), rule
        self.wealth_ = wealth * float(np.prod(1.0 + np.vecdot(returns, history)))
        self.n_rounds_ = self.session_.rounds
        self.weights_history_ = arrays.frozen(history)
        self.weights_ = self.session_.play()
        return self

    # ---------------------------------------------------------------- the set of weights

    def _begin(self, assets: tuple[str, ...]) -> tuple[Session[Any], _Rule]:
        loss = Text(choices=LOSSES)(self.loss, "loss of OnlineAllocator")
        most = self.max_loss
        if most is not None:
            most = arrays.as_number(most, "max_loss of OnlineAllocator", above=0.0, least=_ROUNDING)
        owners = _owners(self.groups, assets)
        K = self._set(assets, owners)
        learner: Any = self.learner
        if learner is None:
            learner = Ensemble(K, caution=self.caution, max_move=self.max_move, experts=(Static(),))
        elif callable(learner):
            learner = learner(K)
        expected = "learner of OnlineAllocator must make a learner, as tw.LyapunovDescent does"
        as_kind(learner, base.Learner, expected)
        return Session(learner), (loss, most, owners)

    def _set(self, assets: tuple[str, ...], owners: Mapping[str, Floats]) -> ConvexSet:
        count = len(assets)
        low = _of_each(self.min_weights, 0.0, assets, "min_weights")
        high = np.minimum(1.0, _of_each(self.max_weights, 1.0, assets, "max_weights"))
        i, few = int(np.argmax(low - high)), bool(high.sum() < 1.0 - _ROUNDING)
        if few or low.sum() > 1.0 + _ROUNDING or low[i] > high[i]:
            setting = "max_weights" if few else "min_weights"
            words = f"{low.sum():g} to {high.sum():g} in all, {assets[i]} {low[i]:g} to {high[i]:g}"
            raise errors.EmptySet(
                f"{setting}: weights sum to 1, but may be {words}.", setting=setting
            )
        rows, most = _group_rows(self.group_limits, owners)
        if len(rows) == 0 and not low.any() and (high == high[0]).all():
            return Simplex(count) if high[0] == 1.0 else CappedSimplex(count, float(high[0]))
        limited = {"A_ub": rows, "b_ub": most} if len(rows) else {}
        bounds = np.column_stack([low, high])
        try:
            return Polytope(A_eq=np.ones((1, count)), b_eq=[1.0], bounds=bounds, **limited)
        except errors.EmptySet:
            words = "min_weights, max_weights and group_limits let no weights sum to 1: loosen one."
            raise errors.EmptySet(words, setting="group_limits") from None

    # ---------------------------------------------------------------- what is known

    @property
    def proved_(self) -> base.Bound | None:
        """Upper bounds for the rows so far; None if there are none."""
        return self.session_.explain().proved

    @property
    def experts_(self) -> Experts:
        """The experts of the learner; prints as a table."""
        return Experts(capabilities.experts_of(self.session_.learner, self.session_.state))

    @property
    def needs_previous_weights(self) -> bool:
        """Whether skfolio hands on what is held from one fold to the next: where weights drift."""
        return bool((self.portfolio_params or {}).get("weight_drift", False))

    def predict(self, X: Any) -> Any:
        """The portfolio that holds `weights_` over these rows, as skfolio has it.

        Parameters
        ----------
        X : array or DataFrame
            Returns, with the columns that were learned from.

        Returns
        -------
        skfolio.Portfolio
            With its returns, ratios and risks.

        Raises
        ------
        MissingExtra
            If skfolio is not installed.
        """
        from sklearn.utils.validation import check_is_fitted, validate_data

        check_is_fitted(self, "weights_")
        try:
            from skfolio import Portfolio
        except ImportError:
            raise errors.MissingExtra("predict needs skfolio: pip install skfolio.") from None
        X = _as_pandas(X)
        validate_data(self, X, dtype=np.float64, reset=False)
        held = self.previous_weights
        settings = {
            "name": type(self).__name__,
            "previous_weights": np.full(len(self.weights_), held) if np.isscalar(held) else held,
            **(self.portfolio_params or {}),
        }
        return Portfolio(X=X, weights=np.array(self.weights_), **settings)

    def score(self, X: Any, y: Any = None) -> float:
        """The Sharpe ratio of `predict(X)`, as skfolio's optimisers have it.

        Parameters
        ----------
        X : array or DataFrame
            Returns.
        y : None
            Ignored; present for compatibility with scikit-learn.

        Returns
        -------
        float
            The mean return over its standard deviation.
        """
        return float(self.predict(X).sharpe_ratio)

    def fit_predict(self, X: Any, y: Any = None) -> Any:
        """`fit(X).predict(X)`.

        Parameters
        ----------
        X : array or DataFrame
            Returns.
        y : None
            Ignored; present for compatibility with scikit-learn.

        Returns
        -------
        skfolio.Portfolio
            That of `fit(X).predict(X)`.
        """
        return self.fit(X).predict(X)


def _as_pandas(X: Any) -> Any:
    if not frames.is_frame(X) or hasattr(X, "iloc"):
        return X
    frame = frames.read_frame(X, "X")
    try:
        from pandas import DataFrame, Index
    except ImportError:
        return frame.values
    index = None if frame.times is None else Index(np.asarray(frame.times))
    return DataFrame(frame.values, columns=frame.names, index=index)


def _of_each(given: Any, default: float, assets: tuple[str, ...], name: str) -> Floats:
    """A number for each asset, at least 0: of one for all, of an array, or by name. Weights are at
    most 1, so 2 stands for whatever is more.
    """
    what, shape = f"{name} of OnlineAllocator", (len(assets),)
    if isinstance(given, Mapping):
        by_name = {str(asset): number for asset, number in given.items()}
        given = [by_name.get(asset, default) for asset in assets]
    array = np.asarray(arrays.as_array(default if given is None else given, what), dtype=np.float64)
    if array.shape not in ((), shape) or (array < 0.0).any():
        kind = errors.InvalidInput if array.shape in ((), shape) else errors.WrongShape
        raise kind(
            f"{what} must be one number of at least 0, or one for each of {len(assets)} assets, "
            f"not {shown(given)}.",
            setting=name,
        )
    return np.broadcast_to(np.minimum(array, 2.0), shape).astype(np.float64)


def _owners(groups: Any, assets: tuple[str, ...]) -> dict[str, Floats]:
    if groups is None:
        return {}
    given = list(groups) if isinstance(groups, np.ndarray) and groups.ndim else groups
    if isinstance(given, list | tuple) and len(given) == len(assets):
        given = dict(zip(assets, given, strict=True))
    if not isinstance(given, Mapping) or not {str(asset) for asset in given} & {*assets}:
        listing = errors.WrongShape if isinstance(given, list | tuple) else errors.WrongType
        raise (errors.InvalidInput if isinstance(given, Mapping) else listing)(
            f"groups must be {{asset: group}}, or a list of one per asset, not {shown(groups)}.",
            setting="groups",
        )
    found = dict[str, Floats]()
    for asset, labels in given.items():
        for label in labels if isinstance(labels, list | tuple | np.ndarray) else [labels]:
            if label is not None:
                members = found.setdefault(str(label), np.zeros(len(assets)))
                members[[name == str(asset) for name in assets]] = 1.0
    return found


def _group_rows(
    limits: Mapping[str, Any] | None, owners: Mapping[str, Floats]
) -> tuple[Floats, Floats]:
    rows, most = list[Floats](), list[float]()
    what = "group_limits of OnlineAllocator"
    given = limits.items() if isinstance(limits, Mapping) else ()
    pairs = {str(g): p if isinstance(p, tuple | list) else (None, p) for g, p in given}
    if not isinstance(limits, Mapping | None) or any(len(pair) != 2 for pair in pairs.values()):
        words = f"{what} are {{group: most}} or {{group: (least, most)}}, not {shown(limits)}."
        raise errors.WrongType(words, setting="group_limits")
    for group, pair in pairs.items():
        members = _members(group, owners, what)
        for sign, number in zip((-1.0, 1.0), pair, strict=True):
            if number is not None:
                rows.append(sign * members)
                most.append(
                    sign * arrays.as_number(number, f"{what}: that of {group!r}", least=0.0)
                )
    return np.array(rows), np.array(most)


def _members(name: str, owners: Mapping[str, Floats], what: str) -> Floats:
    if name not in owners:
        known = f"there are {listed(map(repr, owners))}" if owners else "groups= names them"
        words = f"{what}: no group is called {name!r}; {known}.{did_you_mean(name, owners)}"
        raise errors.InvalidInput(words, setting="group_limits")
    return owners[name]


def _losses(kind: str, returns: Floats, assets: tuple[str, ...]) -> batch.Batch:
    if kind == "linear":
        return linear.Linear(-returns)
    for t, i in np.argwhere(returns <= -1.0)[:1]:
        raise errors.InvalidInput(
            f'The return of {assets[i]} is {returns[t, i]:g} in row {t + 1} of X: "log_wealth" '
            "needs returns above -1, such as 0.01 for 1 %."
        )
    return smooth.LogWealth(1.0 + returns)


def _limits(
    returns: Floats, rule: _Rule, limits: Any, assets: tuple[str, ...]
) -> list[batch.Batch]:
    """The soft limits of rows: A x <= b_t for limits that move, where an asset is a group of its
    own, and the loss of the row.
    """
    columns = limits or {} if limits is None or isinstance(limits, Mapping) else None
    if frames.is_frame(limits):
        frame = frames.read_frame(limits, "limits")
        columns = dict(zip(frame.names or (), frame.values.T, strict=True))
    if columns is None:
        raise errors.WrongType(
            f"limits must be a DataFrame or {{group: numbers}}, not {shown(limits)}."
        )
    rows, count = returns.shape
    _, most, owners = rule
    groups = {**dict(zip(assets, np.eye(count), strict=True)), **owners}
    A = np.array([_members(str(name), groups, "limits") for name in columns])
    b = np.empty((rows, len(columns)))
    for j, (name, column) in enumerate(columns.items()):
        numbers = np.asarray(arrays.as_array(column, f"limits: those of {name!r}"))
        errors.require(
            numbers.shape in ((), (rows,)),
            errors.WrongShape,
            f"limits of {name!r} must be one number, or {rows}, one per row, not of shape "
            f"{numbers.shape}.",
        )
        b[:, j] = numbers
    found: list[batch.Batch] = []
    if len(A):
        found.append(linear.MaxAffine(np.broadcast_to(A, (rows, *A.shape)), b))
    if most is not None:
        found.append(linear.Affine(-returns / most, np.ones(rows)))
    return found
