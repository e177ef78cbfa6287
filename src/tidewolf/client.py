"""A client for one session of a service, with the calls of a session in process.

    session = tw.Session(learner)     becomes     session = tw.Client(url, "routing")

    x = session.play();   session.observe(costs=..., capacities=...);   ...

and the decisions are the same bit for bit. Rounds count from 0 here, and from 1 on the way there.

Every observation carries the number of its round: that of the last decision this client was given
while it waits, else the one that stands. So whatever is sent twice, because an answer was lost,
counts once. If several clients observe rounds of the same session, each gives `round=`.

Send requests to a service, retry them if that can help, and raise its errors as tidewolf's.

    send  ->  2xx: the answer
              no connection, 429, 502, 503, 504, an answer with Retry-After, or of a server that
              does not hold the session, for a balancer may find who does: wait, send again
              else: the error that "title" names, with "detail" as its sentence

    wait before attempt k + 1  =  max(Retry-After, FIRST 2^k)  times a random number of 1/2 to 3/2

Every request may be sent twice: a service answers the second of two alike as it did the first.
Numbers travel as JSON writes them, with the digits that make the same double again.
"""

import json
import random
import re
import threading
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, final
from urllib.parse import urlsplit

import numpy as np

from tidewolf.core import arrays, errors, frames, round_info, sparse
from tidewolf.core.arguments import as_kind, as_text, import_extra, shown
from tidewolf.core.batch import Batch, Unlimited
from tidewolf.core.feedback import Feedback, FullInformation
from tidewolf.core.types import Array, Floats, Shape
from tidewolf.functions.linear import Capacity, Linear

if TYPE_CHECKING:
    import httpx

# httpx, which is optional.
_httpx = partial(import_extra, "httpx", "Talking to a service", "serve")
# The first wait, and the longest. Unit: seconds.
FIRST, LONGEST = 0.1, 30.0
# Answers that a later attempt may not get.
AGAIN = frozenset({429, 502, 503, 504})
# Errors whose title is not the name of an error of tidewolf.
_BY_STATUS: dict[int, type[errors.TidewolfError]] = {
    404: errors.UnknownSession,
    409: errors.OtherContent,
    429: errors.TooMany,
    503: errors.Overloaded,
} | dict.fromkeys((400, 413, 422), errors.InvalidInput)


def as_json(body: Mapping[str, Any]) -> bytes:
    """An object as JSON, in UTF-8, every number finite and with all of its digits."""
    try:
        return json.dumps(body, default=_plain, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        kind = errors.WrongType if isinstance(error, TypeError) else errors.InvalidInput
        kind = errors.NotFinite if "range" in str(error) else kind
        raise kind(f"What is sent to a service cannot be JSON: {error}.") from None


def _plain(x: object) -> Any:
    if isinstance(x, np.ndarray | np.generic):
        return x.tolist()
    if isinstance(x, Mapping):
        return dict(x)
    raise TypeError(f"{shown(x)} is no plain data")


def _checked_url(url: object) -> str:
    with suppress(ValueError):
        if isinstance(url, str) and url.isascii() and url.isprintable() and " " not in url:
            parts = urlsplit(url)
            is_bare = not parts.query and not parts.fragment and parts.port != 0
            if is_bare and parts.scheme in ("http", "https") and parts.hostname:
                return url.rstrip("/")
    raise errors.InvalidInput(
        f"Expected an address such as http://127.0.0.1:8000, not {shown(url)}."
    )


def _retry_after(answer: "httpx.Response") -> float:
    text = answer.headers.get("retry-after", "")
    return float(text) if text.isdigit() else 0.0


def _read(answer: "httpx.Response", url: str) -> dict[str, Any]:
    body = None
    with suppress(ValueError):
        body = json.loads(answer.content or b"{}")
    if answer.is_success and isinstance(body, dict):
        return body
    if not isinstance(body, dict) or not isinstance(body.get("detail"), str):
        raise errors.NoAnswer(
            f"{url} answered {answer.status_code}, and not as a tidewolf service does: is the "
            "address right?"
        )
    raise error_of(answer.status_code, body, _retry_after(answer))


def error_of(
    status: int, problem: Mapping[str, Any], retry_after: float = 1.0
) -> errors.TidewolfError:
    kind = getattr(errors, str(problem.get("title")), None)
    if not (isinstance(kind, type) and issubclass(kind, errors.TidewolfError)):
        kind = _BY_STATUS.get(status, errors.TidewolfError)
    more: dict[str, Any] = {"holder": str(problem.get("holder", "")), "retry_after": retry_after}
    own = {key: value for key, value in more.items() if hasattr(kind, key)}
    return kind(str(problem.get("detail")), **own)


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_TOKEN = re.compile(r"[!-~]{1,1000}")
# An answer is waited for a day, at most.
_LONGEST = 86_400.0
_EXPERIMENT = "An experiment is keys and values"
_WHY = "asked for by a client"
_SENT = (
    "A service takes costs= and capacities=, functions.Linear and functions.Capacity of one "
    "round, gradients or values"
)


@final
class Client(AbstractContextManager["Client"]):
    """A client for one session of a service (`tidewolf serve`), with `play` and `observe` as in
    `Session`.

    No request is sent before it is needed. A client may be shared by threads.

    Parameters
    ----------
    url : str
        The address of the service, such as "http://127.0.0.1:8000".
    session : str
        The name of the session: letters, digits, dots, dashes and underscores, at most 100.
    token : str, optional
        The caller's token. None: the service has no tokens.
    experiment : mapping, optional
        What the session is, with the keys of an experiment file, such as `{"set": {"kind":
        "Simplex", "n": 3}}`; it is created if it does not exist. None: it exists.
    timeout : float, default 10.0
        Time limit for an answer. Unit: seconds.
    attempts : int, default 5
        The most attempts per request, if the service cannot be reached or asks to retry later.

    Raises
    ------
    InvalidInput
        If the address or the name is not valid.
    AlreadyThere
        If a session of this name exists and differs from `experiment`.
    NoAnswer
        If the service cannot be reached.

    Examples
    --------
    >>> session = tw.Client("http://127.0.0.1:8000", "routing")
    >>> session
    Client of the session 'routing' at http://127.0.0.1:8000
    >>> x = session.play()                                   # doctest: +SKIP
    >>> session.observe(costs=[1.0, 0.0, 0.5])               # doctest: +SKIP
    """

    def __init__(
        self,
        url: str,
        session: str,
        *,
        token: str | None = None,
        experiment: Mapping[str, Any] | None = None,
        timeout: float = 10.0,
        attempts: int = 5,
    ) -> None:
        errors.refuse(
            not isinstance(session, str) or not _NAME.fullmatch(session),
            f"A session's name must fit {_NAME.pattern}, not {shown(session)}.",
        )
        if token is not None and not (isinstance(token, str) and _TOKEN.fullmatch(token)):
            raise errors.InvalidInput("A token is signs of ASCII without spaces.")
        self.name, self.url = session, _checked_url(url)
        self._attempts = arrays.as_count(attempts, "The number of attempts")
        self._timeout = min(arrays.as_number(timeout, "The timeout", above=0.0), _LONGEST)
        bearer = {} if token is None else {"authorization": f"Bearer {token}"}
        self._headers = {"content-type": "application/json"} | bearer
        # held while the round of an observation is found, and the observation sent
        self._turn = threading.RLock()
        # the round that stands, from 0, as far as this client knows
        self._standing: int | None = None
        # the names of the entries of a point, in their order, and its shape
        self._known_entries: tuple[tuple[str, ...], Shape] | None = None
        if experiment is not None:
            try:
                self._keep_entries(self._ask("PUT", "", as_kind(experiment, Mapping, _EXPERIMENT)))
            except BaseException:
                self.close()
                raise

    def play(
        self,
        *,
        round: int | None = None,
        time: Any = None,
        context: Any = None,
        advice: Mapping[str, Any] | None = None,
        forecast: Any = None,
        unavailable: Any = None,
        deadline: float | None = None,
    ) -> Floats:
        """Return the decision for the current round, or for a later one, as `Session.play` does. In
        other modes than live it is the point that is played instead.

        Parameters
        ----------
        round : int, optional
            The number of the round, from 0. None: the current round.
        time : float, str or datetime, optional
            When the round is: a number of seconds, a date in ISO form, or a datetime.
        context : int or array, optional
            The kind of the round, as the learner's context expects it.
        advice : mapping, optional
            Proposed points by name. None, or a point with a NaN: absent.
        forecast : None
            Not supported by the service.
        unavailable : sequence of str or int, optional
            Entries that are out of service, by name or index: the decision is 0 there.
        deadline : float, optional
            Time limit for advisers. Unit: seconds.

        Returns
        -------
        array
            A point of the set, read-only.

        Raises
        ------
        InvalidInput, NotSupported, CheckpointError
            As those of `Session.play`.
        UnknownSession, HeldElsewhere, TooMany, Overloaded, NoAnswer
            If the service has no such session, another server holds it, or it cannot answer.
        """
        errors.require(
            forecast is None,
            errors.NotSupported,
            "A service takes no forecast: leave it out, or play in process.",
        )
        if isinstance(advice, Mapping):
            advice = {name: self._in_order(x, name) for name, x in advice.items()}
        known = round_info.RoundInfo(time, context, advice, None, unavailable)
        asked = None if round is None else arrays.as_count(round, "The round", least=0) + 1
        limit = None if deadline is None else arrays.as_number(deadline, "The deadline", least=0.0)
        body = _side_info(known, round=asked, deadline=limit)
        answer = self._ask("POST", "/decisions", body)
        with self._turn:
            number = int(answer["round"]) - 1
            if round is None:
                self._standing = number
            elif self._standing is not None:
                self._standing = max(self._standing, number)
        return self._point(answer["decision"])

    def observe(
        self,
        feedback: Feedback | None = None,
        *,
        round: int | None = None,
        played: Any = None,
        costs: Any = None,
        capacities: Any = None,
        loss: Batch | None = None,
        constraint: Batch | None = None,
        loss_gradient: Any = None,
        constraint_value: Any = None,
        constraint_gradient: Any = None,
        loss_value: float | None = None,
        demands: Any = None,
        weights: Any = None,
        budgets: Any = None,
        spend: Mapping[str, Any] | None = None,
    ) -> None:
        """Send the feedback on a decision, as `Session.observe` does: numbers as arrays, as lists
        in the order of entries, or by name. When it returns, the service has stored it.

        Parameters
        ----------
        feedback : FullInformation, optional
            The functions of the round.
        round : int, optional
            The number of the round, from 0. None: that of the last decision this client received,
            or the current one.
        played, costs, capacities, weights, budgets, spend : array, mapping or float, optional
            As of `Session.observe`; several rows of weights are a list.
        loss, constraint : Linear and Capacity, optional
            The functions, of one round.
        loss_gradient, constraint_value, constraint_gradient, loss_value : array or float, optional
            Gradients and values at the point played, as of `Session.observe`.
        demands : array or mapping, optional
            The demand of each commodity of a network.

        Raises
        ------
        InvalidInput, NotSupported
            If the feedback is not valid, or cannot be sent; nothing was learned then.
        OtherContent
            If the round was observed before with other numbers; those are kept.
        CheckpointError, UnknownSession, HeldElsewhere, TooMany, Overloaded, NoAnswer
            As in `play`.
        """
        given = {"costs": costs, "capacities": capacities, "demands": demands, "weights": weights}
        given |= {"budgets": budgets, "loss_gradient": loss_gradient, "loss_value": loss_value}
        given |= {"constraint_value": constraint_value, "played": played}
        given |= {"constraint_gradient": constraint_gradient}
        body = _observation(feedback, loss, constraint, given)
        if spend is not None:
            body["spend"] = {name: _numbers(x, f"spend of {name!r}") for name, x in spend.items()}
        if round is not None:
            self._tell(arrays.as_count(round, "The round", least=0), body)
            return
        with self._turn:
            self._tell(self.round if self._standing is None else self._standing, body)

    def _tell(self, number: int, body: dict[str, Any]) -> None:
        try:
            self._ask("POST", "/observations", {"round": number + 1, **body})
        except errors.OtherContent:
            self._forget()
            raise
        with self._turn:
            self._standing = number + 1 if self._standing == number else self._standing

    def rollback(self, round: int, *, why: str = _WHY) -> None:
        """Go back to the moment when this round became the next one, as `Session.rollback` does.

        Parameters
        ----------
        round : int
            The number of the round, from 0.
        why : str, optional
            The reason, for the audit log.

        Raises
        ------
        InvalidInput
            If the round is in the future, or too long ago to be remembered.
        """
        number = arrays.as_count(round, "The round to go back to", least=0)
        self._operate("/rollback", {"round": number + 1}, why)

    def migrate(self, experiment: Mapping[str, Any], *, why: str = _WHY) -> None:
        """Continue over a set that changed, or with other settings, as `Session.migrate` does.

        Parameters
        ----------
        experiment : mapping
            What changes: `{"set": {...}}`, `{"learners": [{...}]}`, or both.
        why : str, optional
            The reason, for the audit log.

        Raises
        ------
        InvalidInput, NotSupported
            If the session cannot be moved so; it is unchanged.
        """
        self._operate("/migrate", as_kind(experiment, Mapping, _EXPERIMENT), why)

    def _operate(self, path: str, body: Mapping[str, Any], why: str) -> None:
        try:
            self._ask("POST", path, {**body, "why": as_text(why, "why")})
        finally:
            self._forget()

    def explain(self) -> dict[str, Any]:
        """Explain the current decision, as `session.explain().to_dict()` does.

        Returns
        -------
        dict
            Plain data; rounds count from 1.
        """
        return self._ask("GET", "/explanation")

    @property
    def rounds(self) -> int:
        """Rounds observed so far."""
        return int(self._ask("GET", "")["rounds"])

    @property
    def round(self) -> int:
        """The number, from 0, of the current round."""
        return int(self._ask("GET", "")["round"]) - 1

    @property
    def pending(self) -> tuple[int, ...]:
        """The numbers of the rounds that were decided and have no feedback yet, oldest first."""
        return tuple(int(number) - 1 for number in self._ask("GET", "")["pending"])

    @property
    def mode(self) -> str:
        """What is played: "live", "shadow" or "frozen"."""
        return str(self._ask("GET", "")["mode"])

    @property
    def names(self) -> tuple[str, ...]:
        """What the entries of a point are called, in their order."""
        return self._entries[0]

    def close(self) -> None:
        """Close the connections; the session stays on the service. Safe to call twice."""
        if "_client" in self.__dict__:
            self._client.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client of the session {self.name!r} at {self.url}"

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        content = None if body is None else as_json(body)
        where = f"/v1/sessions/{self.name}{path}"
        for attempt in range(self._attempts):
            answer, failed, asked = None, None, 0.0
            try:
                answer = self._client.request(method, where, content=content)
                asked, status = _retry_after(answer), answer.status_code
                is_held = b'"HeldElsewhere"' in answer.content or "retry-after" in answer.headers
                if status not in AGAIN and not (status >= 400 and is_held):
                    break
            except _httpx().TransportError as error:
                failed = error
            if attempt + 1 < self._attempts:
                time.sleep(
                    min(max(asked, FIRST * 2.0**attempt), LONGEST) * random.uniform(0.5, 1.5)
                )
        if answer is not None:
            return _read(answer, self.url)
        raise errors.NoAnswer(
            f"{self.url} does not answer ({failed!r}): is `tidewolf serve` running there?"
        ) from failed

    @cached_property
    def _client(self) -> "httpx.Client":
        is_local = urlsplit(self.url).hostname in ("localhost", "127.0.0.1", "::1")
        found: httpx.Client = _httpx().Client(
            base_url=self.url, headers=self._headers, timeout=self._timeout, trust_env=not is_local
        )
        return found

    def _forget(self) -> None:
        with self._turn:
            self._standing = self._known_entries = None

    @property
    def _entries(self) -> tuple[tuple[str, ...], Shape]:
        return self._known_entries or self._keep_entries(self._ask("GET", ""))

    def _keep_entries(self, answer: Mapping[str, Any]) -> tuple[tuple[str, ...], Shape]:
        self._known_entries = found = tuple(answer["names"]), tuple(answer["shape"])
        return found

    def _in_order(self, x: Any, name: Any) -> Any:
        if not (isinstance(x, Mapping) or frames.is_table(x)):
            return x
        names, shape = self._entries
        return frames.in_order(x, names, f"The advice {shown(name)}", shape, gaps=True)

    def _point(self, decision: Mapping[str, float]) -> Floats:
        """Numbers by name as a point; another client may have migrated the session meanwhile."""
        known = self._entries
        fits = set(known[0]) == decision.keys()
        names, shape = known if fits else self._keep_entries(self._ask("GET", ""))
        return arrays.frozen(
            np.array([decision[name] for name in names], dtype=np.float64).reshape(shape)
        )


def _side_info(info: round_info.RoundInfo, **more: Any) -> dict[str, Any]:
    is_plain = isinstance(info.context, str | int | float | None)
    given = {
        "time": info.time,
        "context": info.context if is_plain else arrays.to_numpy(info.context).tolist(),
        "unavailable": info.unavailable,
        "advice": {name: _numbers(x, name) for name, x in (info.advice or {}).items()} or None,
        **more,
    }
    return {key: part for key, part in given.items() if part is not None}


def _observation(
    feedback: Feedback | None, loss: Batch | None, constraint: Batch | None, given: dict[str, Any]
) -> dict[str, Any]:
    if feedback is not None:
        _require_alone("feedback", loss, constraint)
        if not isinstance(feedback, FullInformation):
            raise errors.NotSupported(f"{_SENT}; {type(feedback).__name__} was given.")
        loss, constraint = feedback
    if loss is not None:
        _require_alone("loss=", given["costs"])
        given["costs"] = _row(loss, Linear)
    if constraint is not None and not isinstance(constraint, Unlimited):
        _require_alone("constraint=", given["capacities"])
        given["capacities"] = _row(constraint, Capacity)
    body = {key: _numbers(x, key) for key, x in given.items() if x is not None}
    limits, gradients = body.get("constraint_value"), given["constraint_gradient"]
    if isinstance(limits, list) and gradients is not None:
        body["constraint_gradient"] = _rows(gradients, len(limits), "constraint_gradient")
    budgets = body.get("budgets")
    if isinstance(budgets, list) and len(budgets) > 1 and "weights" in body:
        body["weights"] = _rows(given["weights"], len(budgets), "weights")
    return body


def _numbers(x: Any, what: str) -> Any:
    x = frames.by_name(x, what)
    if isinstance(x, Mapping):
        names = [as_text(name, f"A name in {what}") for name in x]
        return {name: arrays.as_number(x[name], f"{what} of {name!r}") for name in names}
    array = np.asarray(arrays.to_numpy(arrays.as_array(x, what)), dtype=np.float64)
    return array.tolist() if array.ndim == 0 else array.reshape(-1).tolist()


def _rows(x: Any, limits: int, what: str) -> Any:
    array = np.asarray(arrays.to_numpy(arrays.as_array(x, what)), dtype=np.float64)
    if array.ndim == 0 or len(array) != limits:
        raise errors.WrongShape(f"{what} needs {limits} rows, not {array.shape}.", setting=what)
    return array.reshape(limits, -1).tolist()


def _require_alone(this: str, *others: object) -> None:
    errors.refuse(
        any(other is not None for other in others),
        f"observe was given the same twice, by {this} and otherwise: give one.",
    )


def _row(batch: object, kind: type[Linear] | type[Capacity]) -> Array:
    if not isinstance(batch, kind) or len(batch) != 1:
        rounds = f" of {len(batch)} rounds" if isinstance(batch, Batch) and len(batch) != 1 else ""
        raise errors.NotSupported(f"{_SENT}; {type(batch).__name__}{rounds} was given.")
    coefficients: Any = batch.C if isinstance(batch, Linear) else batch.c
    return (coefficients.toarray() if sparse.is_sparse(coefficients) else coefficients)[0]
