"""A client for one session of a service, with the calls of a session in process.

    session = tw.Session(learner)     becomes     session = tw.Client(url, "routing")

    x = session.play();   session.observe(costs=..., capacities=...);   ...

and the decisions are the same to the bit. Rounds count from 0 here, and from 1 on the way there.

Every observation carries the number of its round: that of the last decision this client was given
while it waits, else the one that stands. So whatever is sent twice, because an answer was lost,
counts once. If several clients observe rounds of the same session, each gives `round=`.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import Any, Self, final

import numpy as np

from tidewolf.client.transport import Transport
from tidewolf.core.arguments import as_text, shown
from tidewolf.core.arrays import as_array, as_count, as_number, frozen, to_numpy
from tidewolf.core.batch import Batch
from tidewolf.core.errors import InvalidInput, NotSupported, OtherContent, WrongShape, WrongType
from tidewolf.core.feedback import Feedback, FullInformation
from tidewolf.core.frames import by_name, in_order, is_table
from tidewolf.core.round_info import RoundInfo
from tidewolf.core.sparse import is_sparse
from tidewolf.core.types import Array, Floats, Shape
from tidewolf.core.unlimited import Unlimited
from tidewolf.functions.linear import Capacity, Linear

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_TOKEN = re.compile(r"[!-~]{1,1000}")
_LONGEST = 86_400.0
"""An answer is waited for a day, at most."""
_WHY = "asked for by a client"
_SENT = (
    "A service takes costs= and capacities=, functions.Linear and functions.Capacity of one "
    "round, gradients or values"
)


@final
class Client:
    """A client for one session of a service (`tidewolf serve`), with `play` and `observe` as in
    `Session`.

    No request is sent before it is needed. A client may be shared by threads.

    Parameters
    ----------
    url : str
        Where the service is, such as "http://127.0.0.1:8000".
    session : str
        The name of the session: letters, digits, dots, dashes and underscores, at most 100.
    token : str, optional
        What the service knows the caller by. None: it asks for none.
    experiment : mapping, optional
        What the session is, with the keys of an experiment file, such as `{"set": {"kind":
        "Simplex", "n": 3}}`; it is made where it is not there. None: it is there.
    timeout : float, default 10.0
        How long an answer may take. Unit: seconds.
    attempts : int, default 5
        How often a request is sent, at most, where the service cannot be reached or asks to come
        back later.

    Raises
    ------
    InvalidInput
        Where the address or the name is none.
    AlreadyThere
        Where a session of this name is something else than `experiment`.
    NoAnswer
        Where the service cannot be reached.

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
        if not isinstance(session, str) or not _NAME.fullmatch(session):
            raise InvalidInput(
                "A session is called by letters, digits, dots, dashes and underscores, at most "
                f"100, beginning with a letter or a digit, not {shown(session)}."
            )
        if token is not None and not (isinstance(token, str) and _TOKEN.fullmatch(token)):
            raise InvalidInput("A token is signs of ASCII without spaces.")
        self.name = session
        timeout = min(as_number(timeout, "The timeout", above=0.0), _LONGEST)
        attempts = as_count(attempts, "The number of attempts")
        self._transport = Transport(url, token, timeout, attempts)
        self._turn = threading.RLock()
        """held while the round of an observation is found, and the observation sent"""
        self._standing: int | None = None
        """the round that stands, from 0, as far as this client knows"""
        self._known_entries: tuple[tuple[str, ...], Shape] | None = None
        """the names of the entries of a point, in their order, and its shape"""
        if experiment is not None:
            if not isinstance(experiment, Mapping):
                raise WrongType(f"An experiment is keys and values, not {shown(experiment)}.")
            try:
                self._keep_entries(self._ask("PUT", "", experiment))
            except BaseException:
                self.close()
                raise

    @property
    def url(self) -> str:
        """Where the service is."""
        return self._transport.url

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
        """The point to play in the round that stands, or in a later one, as `Session.play` gives
        it; in the modes of a service other than live, what is played in its place.

        Parameters
        ----------
        round : int, optional
            The number of the round, from 0. None: the round that stands.
        time : float, str or datetime, optional
            When the round is: a number of seconds, a date in ISO form, or a datetime.
        context : int or array, optional
            What kind of round it is, as the learner's context reads it.
        advice : mapping, optional
            Points that others propose, by name. None, or a point that holds a NaN: absent.
        forecast : None
            A service takes none.
        unavailable : sequence of str or int, optional
            Entries that are out, by name or place: the point is 0 there.
        deadline : float, optional
            How long advisers may take. Unit: seconds.

        Returns
        -------
        array
            A member of the set, of its shape, read-only.

        Raises
        ------
        InvalidInput, NotSupported, CheckpointError
            As those of `Session.play`.
        UnknownSession, HeldElsewhere, TooMany, Overloaded, NoAnswer
            Where the service has no such session, another server holds it, or it cannot answer.
        """
        if forecast is not None:
            raise NotSupported("A service takes no forecast: leave it out, or play in process.")
        if isinstance(advice, Mapping):
            advice = {name: self._in_order(x, name) for name, x in advice.items()}
        body = _info_body(RoundInfo(time, context, advice, None, unavailable))
        if "unavailable" in body:
            body["unavailable"] = [self._called(entry) for entry in body["unavailable"]]
        if round is not None:
            body["round"] = as_count(round, "The round", least=0) + 1
        if deadline is not None:
            body["deadline"] = as_number(deadline, "The deadline", least=0.0)
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
    ) -> None:
        """Tell of what the point that was played met, as `Session.observe` does. Once it returns,
        the service has it on disk.

        Numbers may be arrays, lists in the order of entries, or given by name.

        Parameters
        ----------
        feedback : FullInformation, optional
            The functions of the round.
        round : int, optional
            The number of the round, from 0. None: that of the last decision this client was given,
            or the one that stands.
        played : array or mapping, optional
            What was really done, where it was not the decision.
        costs : array or mapping, optional
            The loss of each entry.
        capacities : array or mapping, optional
            The most each entry should carry.
        loss : Linear, optional
            The loss, of one round.
        constraint : Capacity, optional
            The constraint, of one round.
        loss_gradient : array or mapping, optional
            The gradient of the loss at the point played.
        constraint_value : float or array, optional
            The value of the constraint there; one a limit where the learner has them apart.
        constraint_gradient : array or mapping, optional
            The gradient of the constraint there.
        loss_value : float, optional
            The value of the loss there.
        demands : array or mapping, optional
            How much each commodity of a network sends.
        weights : array or mapping, optional
            What each entry takes of the budget.
        budgets : float, optional
            The budget.

        Raises
        ------
        InvalidInput
            If it cannot be used; nothing was learned, and the round can be observed again.
        OtherContent
            If the round was observed before, with other numbers, which are kept.
        NotSupported
            Where it is a function that JSON has no numbers for.
        CheckpointError
            Where the service could not keep it.
        UnknownSession, HeldElsewhere, TooMany, Overloaded, NoAnswer
            As in `play`.
        """
        if feedback is not None:
            loss, constraint = _functions(feedback, loss, constraint)
        if loss is not None:
            _require_alone(costs, "costs=", "loss=")
            costs = _row(loss, Linear)
        if constraint is not None and not isinstance(constraint, Unlimited):
            _require_alone(capacities, "capacities=", "constraint=")
            capacities = _row(constraint, Capacity)
        told = {
            "costs": costs,
            "capacities": capacities,
            "demands": demands,
            "weights": weights,
            "budgets": budgets,
            "loss_gradient": loss_gradient,
            "constraint_value": constraint_value,
            "constraint_gradient": constraint_gradient,
            "loss_value": loss_value,
            "played": played,
        }
        body = {key: _numbers(x, key) for key, x in told.items() if x is not None}
        limits = body.get("constraint_value")
        if isinstance(limits, list) and constraint_gradient is not None:
            body["constraint_gradient"] = _rows(constraint_gradient, len(limits))
        if round is not None:
            self._tell(as_count(round, "The round", least=0), body)
            return
        with self._turn:
            self._tell(self.round if self._standing is None else self._standing, body)

    def _tell(self, number: int, body: dict[str, Any]) -> None:
        try:
            self._ask("POST", "/observations", {"round": number + 1, **body})
        except OtherContent:
            self._forget()
            raise
        with self._turn:
            if self._standing == number:
                self._standing = number + 1

    def rollback(self, round: int, *, why: str = _WHY) -> None:
        """Go back to the moment when this round became the coming one, as `Session.rollback` does.

        Parameters
        ----------
        round : int
            The number of the round, from 0.
        why : str, optional
            The reason, for the audit log.

        Raises
        ------
        InvalidInput
            Where the round has not come yet, or is not remembered.
        """
        number = as_count(round, "The round to go back to", least=0)
        try:
            self._ask("POST", "/rollback", {"round": number + 1, "why": as_text(why, "why")})
        finally:
            self._forget()

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
            Where the session cannot go on so; it stays as it was.
        """
        if not isinstance(experiment, Mapping):
            raise WrongType(f"An experiment is keys and values, not {shown(experiment)}.")
        try:
            self._ask("POST", "/migrate", {**experiment, "why": as_text(why, "why")})
        finally:
            self._forget()

    def explain(self) -> dict[str, Any]:
        """Why the decision that stands is what it is, as `session.explain().to_dict()` has it.

        Returns
        -------
        dict
            Plain data, as the service says it: rounds count from 1 there.
        """
        return self._ask("GET", "/explanation")

    @property
    def rounds(self) -> int:
        """Rounds observed so far."""
        return int(self._ask("GET", "")["rounds"])

    @property
    def round(self) -> int:
        """The number, from 0, of the round that stands."""
        return int(self._ask("GET", "")["round"]) - 1

    @property
    def pending(self) -> tuple[int, ...]:
        """The numbers of the rounds that were decided and wait for their feedback, oldest first."""
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
        """Let go of the connections; the session stays with the service. Twice does no harm."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client of the session {self.name!r} at {self.url}"

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return self._transport.ask(method, f"/v1/sessions/{self.name}{path}", body)

    def _forget(self) -> None:
        """What may have changed is asked for anew."""
        with self._turn:
            self._standing = self._known_entries = None

    @property
    def _entries(self) -> tuple[tuple[str, ...], Shape]:
        found = self._known_entries
        return self._keep_entries(self._ask("GET", "")) if found is None else found

    def _keep_entries(self, answer: Mapping[str, Any]) -> tuple[tuple[str, ...], Shape]:
        self._known_entries = found = tuple(answer["names"]), tuple(answer["shape"])
        return found

    def _in_order(self, x: Any, name: Any) -> Any:
        """Advice that is given by name, in the order of the entries."""
        if not (isinstance(x, Mapping) or is_table(x)):
            return x
        names, shape = self._entries
        return in_order(x, names, f"The advice {shown(name)}", shape, gaps=True)

    def _called(self, entry: int | str) -> str:
        """The name of an entry that may be given by its place."""
        if isinstance(entry, str):
            return entry
        if entry >= len(self.names):
            raise InvalidInput(
                f"What is unavailable has place {entry}; the set has {len(self.names)} entries, "
                "from place 0 on."
            )
        return self.names[entry]

    def _point(self, decision: Mapping[str, float]) -> Floats:
        """Numbers by name as a point; another client may have migrated the session meanwhile."""
        names, shape = self._entries
        if set(names) != decision.keys():
            names, shape = self._keep_entries(self._ask("GET", ""))
        x = np.array([decision[name] for name in names], dtype=np.float64)
        return frozen(x.reshape(shape))


def _info_body(info: RoundInfo) -> dict[str, Any]:
    """What is known before a round, as JSON has it."""
    body: dict[str, Any] = {}
    if info.time is not None:
        body["time"] = info.time
    if info.context is not None:
        is_one = isinstance(info.context, str | int | float)
        body["context"] = info.context if is_one else to_numpy(info.context).tolist()
    if info.advice:
        body["advice"] = {name: _numbers(x, name) for name, x in info.advice.items()}
    if info.unavailable:
        body["unavailable"] = list(info.unavailable)
    return body


def _numbers(x: Any, what: str) -> Any:
    """Numbers by name, one number, or a list of them in C order."""
    x = by_name(x, what)
    if isinstance(x, Mapping):
        names = [as_text(name, f"A name in {what}") for name in x]
        return {name: as_number(x[name], f"{what} of {name!r}") for name in names}
    array = np.asarray(to_numpy(as_array(x, what)), dtype=np.float64)
    return array.tolist() if array.ndim == 0 else array.reshape(-1).tolist()


def _rows(x: Any, limits: int) -> Any:
    """The gradients of several limits, a list for each."""
    array = np.asarray(to_numpy(as_array(x, "constraint_gradient")), dtype=np.float64)
    if array.ndim == 0 or len(array) != limits:
        raise WrongShape(
            f"constraint_gradient has shape {array.shape}; with {limits} limits it is {limits} "
            "gradients, one a limit."
        )
    return array.reshape(limits, -1).tolist()


def _functions(feedback: Feedback, *others: object) -> tuple[Batch, Batch]:
    if not isinstance(feedback, FullInformation):
        raise NotSupported(f"{_SENT}; {type(feedback).__name__} was given.")
    for other in others:
        _require_alone(other, "loss= or constraint=", "feedback")
    return feedback.losses, feedback.constraints


def _require_alone(other: object, this: str, that: str) -> None:
    if other is not None:
        raise InvalidInput(f"observe was given {that} and {this}, which say the same: give one.")


def _row(batch: object, kind: type[Linear] | type[Capacity]) -> Array:
    """The numbers of a function of one round."""
    if not isinstance(batch, kind) or len(batch) != 1:
        rounds = f" of {len(batch)} rounds" if isinstance(batch, Batch) and len(batch) != 1 else ""
        raise NotSupported(f"{_SENT}; {type(batch).__name__}{rounds} was given.")
    coefficients: Any = batch.C if isinstance(batch, Linear) else batch.c
    return (coefficients.toarray() if is_sparse(coefficients) else coefficients)[0]
