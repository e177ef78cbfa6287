"""What is asked and answered, as pydantic models: they read requests, and are the OpenAPI schema.

A request is read strictly: no key that is unknown, no text or true for a number. Numbers of entries
are left to the session, which knows the names of its set. Null is the same as absent.

Descriptions of sessions: the body of the request that creates a session.

    {"set": {"kind": "Simplex", "n": 5}, "rounds": 1000, "learners": [{"name": "Ensemble"}],
     "expire_after": 100, "deadline": 0.05, "fallback": {...}, "stale_after": 600}

The set and the learner are described by the keys of experiment files (`experiments.models`), with
graphs and arrays inline. The rest is the service's own: for how many rounds an observation may be
late, how long a decision may take, what is answered if the learner cannot decide, and after how
long without an observation the session is stale.

`canonical` is all of it but `why`, with keys in order: two requests ask for the same session where
that is the same text, and the text makes the same learner again, bit for bit.

Kernels are compiled when they are first called and kept on disk. On a new machine that takes up to
a minute for each kind of session, once. So when a session is made, and when a server finds sessions
in its store, a few rounds are played on a copy that is thrown away (`warm_up`): in order, then with
late feedback, and with a violated constraint.
"""

import json
import math
import re
from collections.abc import Hashable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self, final
from urllib.parse import parse_qsl

import numpy as np
import pydantic
from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema

from tidewolf import session as sessions
from tidewolf.core import arrays, conforming, feedback
from tidewolf.core.errors import BrokenFile, InvalidInput, NotAMember, TidewolfError, require
from tidewolf.core.types import Array, NDArray
from tidewolf.experiments import building, models
from tidewolf.experiments import experiment as keys
from tidewolf.methods import base, capabilities
from tidewolf.sets.base import ConvexSet
from tidewolf.storage.session_store import Entry, SessionStore

# What a session, or a token, may be called.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
# What one answer lists, at most.
MOST = 1000


def _numbers(*others: dict[str, Any]) -> WithJsonSchema:
    number = {"type": "number"}
    return WithJsonSchema(
        {
            "description": "One number an entry: a list, or by name.",
            "anyOf": [
                {"type": "array", "items": number},
                {"type": "object", "additionalProperties": number},
                *others,
                {"type": "null"},
            ],
        }
    )


def _digits(text: Any) -> Any:
    if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= 15:
        return int(text)
    raise ValueError("it should be a whole number, in at most 15 digits")


Numbers = Annotated[Any, _numbers()]
OneOrMore = Annotated[Any, _numbers({"type": "number"})]
Several = Annotated[Any, _numbers({"type": "array", "items": {}})]
Finite = Annotated[float, Field(ge=-1e300, le=1e300)]
Round = Annotated[int, Field(ge=1, lt=2**53, description="Which round, from 1.")]
Why = Annotated[str, Field(max_length=500, description="Why, for the audit log.")]
Name = Annotated[str, Field(pattern=f"^{NAME.pattern}$", description="The name of the session.")]
Digits = pydantic.BeforeValidator(_digits)
Most = Annotated[int, Field(ge=1, le=MOST, description="How many to list."), Digits]
Mode = Literal["live", "shadow", "frozen"]
Source = Literal["learner", "last", "static", "pinned", "incumbent"]
ByName = dict[str, float]
# Numbers of entries, which the session checks.
Entries = list[Any] | dict[str, Any]


def optional(about: str, **more: Any) -> Any:
    return Field(None, description=about, **more)


def example(**keys: Any) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [keys]})


# --- requests -------------------------------------------------------------------------------------


class Request(models.Strict):
    """The body of a request."""

    @classmethod
    def read(cls, given: Any, context: Any = None) -> Self:
        """The request that plain data is; validators may need a context.

        Raises
        ------
        InvalidInput
            If a key is missing, unknown, or of another kind: the sentence begins with the keys that
            lead there.

        Examples
        --------
        >>> from tidewolf.service.models import Rollback
        >>> Rollback.read({"round": 3}).round
        3
        >>> Rollback.read({"round": "3"})
        Traceback (most recent call last):
        ...
        tidewolf.core.errors.InvalidInput: round: round should be a valid integer, not '3'.
        """
        try:
            return cls.model_validate(given, context=context)
        except ValidationError as error:
            path, sentence = models.refusal(error, given, cls)
            keys = [str(key + 1 if isinstance(key, int) else key) for key in path]
            raise InvalidInput(f"{', '.join(keys)}{': ' * bool(keys)}{sentence}") from None


class DecisionRequest(Request):
    """Which round, and what is known before it."""

    model_config = example(round=2, unavailable=["entry 2"])
    round: Round | None = None
    time: str | int | float | None = optional("When the round is.")
    context: Any = optional("What kind of round it is, as the learner asks.")
    advice: dict[str, Numbers] | None = optional("Points of others, by name.")
    unavailable: Annotated[list[str | int], models.FIRST] | None = optional("Entries that are out.")
    deadline: Annotated[float, Field(ge=0.0, le=1e9)] | None = optional(
        "How long it may take. Unit: seconds."
    )


# A request without a body.
NOTHING = DecisionRequest.read({})


class Observation(Request):
    """What per round turned out to be: numbers, or gradients or values at what was played."""

    model_config = example(round=1, costs=[1.0, 0.2, 0.5], capacities=[0.6, 0.6, 0.6])
    round: Round | None = None
    time: str | int | float | None = optional("When the round was.")
    costs: Numbers = None
    capacities: Numbers = None
    demands: OneOrMore = None
    weights: Several = None
    budgets: OneOrMore = None
    budget: Finite | None = None
    spend: Annotated[dict[str, Numbers], Field(min_length=1)] | None = optional(
        "What one of each entry spends, by the names of budgets."
    )
    loss_gradient: Numbers = None
    constraint_value: Finite | models.Some[Finite] | None = None
    constraint_gradient: Several = None
    loss_value: Finite | None = None
    played: Numbers = None


class Observations(Request):
    """Several observations, in order; each is checked when those before it were taken."""

    observations: Annotated[
        list[Annotated[Any, WithJsonSchema({"$ref": "#/components/schemas/Observation"})]],
        Field(min_length=1),
    ]


class ObservationRequest(pydantic.RootModel[Observation | Observations]):
    """One observation, or several."""

    @classmethod
    def read(cls, given: Any) -> Observation | Observations:
        return Observations.read(given) if "observations" in given else Observation.read(given)


class Migration(Request):
    """Another set, learner or static point, from the next round on."""

    model_config = example(learners=[{"name": "LyapunovDescent"}], why="Less to compute.")
    set: dict[str, Any] | None = None
    learners: models.One[str | dict[str, Any]] | None = None
    fallback: Entries | None = optional("The static point; null: the center.")
    why: Why | None = None


class ModeChange(Request):
    """Which point is played: the learner's, the incumbent's, or the one that stands."""

    model_config = example(mode="shadow", incumbent=[0.2, 0.3, 0.5], why="First week.")
    mode: Mode
    incumbent: Numbers = optional("The point that is played in shadow mode.")
    why: Why | None = None


class Rollback(Request):
    """Back to a round."""

    model_config = example(round=7, why="Costs were in the wrong unit.")
    round: Round
    why: Why | None = None


class Pin(Request):
    """A point to be played until further notice."""

    model_config = example(decision=[0.2, 0.3, 0.5], why="Maintenance until noon.")
    decision: Numbers = Field(description="A point; null lets go of it.")
    why: Why | None = None


class Query(Request):
    """What stands behind the question mark of an address."""

    model_config = ConfigDict(strict=False)

    @classmethod
    def read(cls, given: bytes, context: Any = None) -> Self:
        try:
            pairs = parse_qsl(
                given.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=20
            )
        except ValueError:
            raise InvalidInput("What stands behind ? is no query in UTF-8.") from None
        found = dict(pairs)
        require(len(found) >= len(pairs), InvalidInput, "The query has a key twice.")
        if any("\0" in value for value in found.values()):
            raise InvalidInput("The query has the character U+0000, which no text has.")
        return super().read(found)


class WhyQuery(Query):
    why: Why = ""


class PageQuery(Query):
    after: str = Field("", description="Begin behind this name.")


class ListQuery(PageQuery):
    prefix: str = Field("", description="How names begin.")
    most: Most = 100


class HistoryQuery(Query):
    first: Annotated[int, Field(ge=1, description="Begin with this round."), Digits] = 1
    most: Most = 100


class AuditQuery(Query):
    after: Annotated[int, Field(ge=0, description="Begin behind this entry."), Digits] = 0
    most: Most = 100


# --- answers --------------------------------------------------------------------------------------


class Answer(BaseModel):
    """What every answer has."""

    version: str = Field(description="The version of tidewolf that answers.")


class Status(Answer):
    status: str


class Saved(BaseModel):
    loss: float | None
    violation: float | None
    rounds: int


class Listed(BaseModel):
    name: Name
    rounds: int = Field(ge=0, description="Rounds observed.")
    mode: Mode
    learner: str


class Spent(BaseModel):
    net: float = Field(description="What was spent above the plan so far.")
    multiplier: float = Field(description="The price of a unit spent, in units of the loss.")


class Session(Answer, Listed):
    pending: list[Round] = Field(description="Rounds that were decided and not observed.")
    round: Round = Field(description="The round that stands.")
    names: list[str] = Field(description="Entries of a decision, in order.")
    shape: list[int]
    created: float = Field(description="When it was created. Unit: seconds since 1970.")
    settings: dict[str, Any]
    saved: Saved
    notes: list[str]
    pinned: bool
    stale: bool
    budgets: dict[str, Spent] = Field(description="Of each budget by name.")


class SessionList(Answer):
    sessions: list[Listed]


class Decision(Answer):
    round: Round
    decision: ByName | None = Field(description="Null in shadow mode without an incumbent.")
    paths: list[dict[str, Any]] | None
    previous: ByName | None
    moved: float | None
    mode: Mode
    source: Source
    reason: str
    proposal: Annotated[
        ByName, Field(description="What the learner would play, if another point is played.")
    ] = {}


class Outcome(BaseModel):
    round: Round
    cost: float | None
    violation: float | None


class Observed(Answer, Outcome):
    rounds: int = Field(ge=0)


class Problem(Answer):
    """A problem (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str = Field(description="A sentence: what is wrong, what to do.")
    holder: str = Field("", description="The server that holds the session.")


class RefusedOne(BaseModel):
    error: Problem


class ObservedMany(Answer):
    observations: list[Outcome | RefusedOne]
    rounds: int = Field(ge=0)


class Past(Outcome):
    at: float
    mode: Mode
    source: Source


class History(Answer):
    rounds: list[Past]


class Experts(Answer):
    experts: list[dict[str, Any]]


class Audit(Answer):
    entries: list[Entry]


# --- what a session is made of --------------------------------------------------------------------

# Lists and objects within each other.
DEEPEST = 24
# Numbers, texts, lists and objects of a request.
MOST_VALUES = 1_000_000
# Characters of a name, or another text.
LONGEST_TEXT = 1000
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x80-\x9f\ud800-\udfff]")
_REQUEST = keys.Request("the request", {}, {})


@final
class Built:
    """The set, the reader of rows and the learner, built from a description.

    Parameters
    ----------
    reader : RoundReader
        The set, and the reader that makes functions of rows on it.
    learner : Learner
        The learner.
    fallback : list or mapping, optional
        The point that is played if nothing else can be.

    Examples
    --------
    >>> from tidewolf.service.models import Description
    >>> built = Description.read({"set": {"kind": "Simplex", "n": 2}}).build()
    >>> built.reader.named(built.K.center)
    {'entry 0': 0.5, 'entry 1': 0.5}
    >>> loss, limit = built.reader.functions({"costs": [1.0, 0.0], "capacities": [0.5, 0.25]})
    >>> loss.values(built.K.center), limit.values(built.K.center)
    (array([0.5]), array([0.25]))
    """

    def __init__(
        self, reader: building.RoundReader, learner: base.Learner[Any], fallback: Any = None
    ) -> None:
        self.reader, self.learner, self.K = reader, learner, reader.K
        # its entries, in C order
        point = None if fallback is None else self.member(fallback, "The fallback")
        self.fallback = None if point is None else tuple(point.reshape(-1).tolist())

    def member(self, given: Any, what: str) -> Array:
        x = self.reader.point(given, what)
        self.require_member(x, what)
        return x

    def require_member(self, x: Array, what: str) -> None:
        if not conforming.is_member(self.K, x):
            raise NotAMember(
                f"{what} should be a point of the set, and is off by {self.K.infeasibility(x):g}."
            )


class Objective(models.Strict):
    """What the loss of a network is."""

    objective: models.Objective = "cost"


class Description(models.Described, Request):
    """A session: its set, its learner, and how it is served.

    `read` makes one of a request's body, `parse` of its canonical text.

    Examples
    --------
    >>> from tidewolf.service.models import Description
    >>> request = Description.read({"set": {"n": 2, "kind": "Simplex"}, "why": "a trial"})
    >>> request.canonical
    '{"set":{"kind":"Simplex","n":2}}'
    >>> Description.parse(request.canonical).canonical == request.canonical
    True
    """

    model_config = example(
        set={"kind": "Simplex", "n": 3}, rounds=1000, learners=[{"name": "Ensemble"}]
    )
    format: Annotated[int, Field(ge=1, le=keys.FILE_FORMAT)] | None = None
    set: models.SetTable = Field(description="As [set] of an experiment file; graphs inline.")
    names: Annotated[list[Annotated[str, Field(min_length=1)]], models.FIRST] | None = optional(
        "Names of entries in order."
    )
    stream: Objective = Field(
        Objective(), description="As [stream] of an experiment file: the objective of a network."
    )
    learners: models.One[models.Learner] | None = optional("Who decides; Ensemble by default.")
    seeds: models.Seed | models.One[models.Seed] | None = optional("The seed of everything random.")
    caution: models.Positive | models.One[models.Positive] | None = optional(
        "How careful.", validation_alias=pydantic.AliasChoices("caution", "cautions")
    )
    expire_after: models.Count | None = optional("Rounds after which a decision is not pending.")
    deadline: Annotated[float, Field(gt=0.0, le=3600.0)] | None = optional(
        "How long a decision may take. Unit: seconds."
    )
    stale_after: models.Positive | None = optional(
        "When feedback counts as missing. Unit: seconds."
    )
    fallback: Entries | None = optional("The point if all else fails: numbers by name, or a list.")
    why: Why | None = None
    _canonical: str = pydantic.PrivateAttr("")

    @pydantic.model_validator(mode="after")
    def _is_modest(self) -> Self:
        try:
            models.require_modest_learner(self.learner.given, models.entries_of(self.set))
        except InvalidInput as error:
            raise models.refused(str(error), "learners", 0, error.setting or "") from None
        return self

    @classmethod
    def read(cls, given: Any, context: Any = None) -> Self:
        """The description in the body of a request; nothing is built before `build`.

        Raises
        ------
        InvalidInput
            If it is not accepted: the sentence begins with the keys that lead there.
        """
        require_plain(given)
        found = super().read(given, models.Source(None))
        text = {key: value for key, value in given.items() if key != "why" and value is not None}
        found._canonical = json.dumps(text, sort_keys=True, allow_nan=False, separators=(",", ":"))
        return found

    @classmethod
    def parse(cls, text: str) -> Self:
        try:
            return cls.read(json.loads(text))
        except (json.JSONDecodeError, TypeError, RecursionError) as error:
            raise InvalidInput(f"The description is no JSON: {error}.") from None

    @property
    def canonical(self) -> str:
        return self._canonical

    @property
    def learner(self) -> keys.Choice:
        chosen: keys.Choice = keys.USUAL if self.learners is None else self.learners[0]
        if self.caution is not None and "caution" in keys.learner_keys(chosen.name):
            return keys.Choice.of(chosen.name, {"caution": _one(self.caution), **chosen.given})
        return chosen

    def build(self) -> Built:
        """The set, the reader and the learner: the same ones each time, bit for bit.

        Raises
        ------
        InvalidInput
            If there is no such set or learner, or the fallback is no point of the set.
        """
        with np.errstate(all="ignore"):  # sets refuse what is not finite
            names = tuple(self.names or ())
            place = keys.Place(_REQUEST, ("set",))
            reader = building.RoundReader.of_set(self.set, place, names, self.stream.objective)
            defaults: dict[str, Any] = {"seed": _one(self.seeds or 0)}
            if self.budgets is not None:
                if "budgets" not in keys.learner_keys(self.learner.name):
                    raise InvalidInput(
                        f"budgets: {self.learner.name} keeps no budgets: Ensemble and "
                        "LyapunovDescent do."
                    )
                defaults["budgets"] = tuple(self.budgets)
            if self.rounds is not None:
                defaults["horizon"] = self.rounds
            place = keys.Place(_REQUEST, ("learners", 0))
            learner = building.make_learner(
                self.learner, reader.K, reader.network, place, _no_table, defaults
            )
        return Built(reader, learner, self.fallback)


def _one(given: Any) -> Any:
    return given[0] if isinstance(given, list) else given


def _no_table(path: Path, place: keys.Place) -> NDArray:
    raise InvalidInput(f"{place.words()}{models.NO_FILES}.")


def require_plain(data: Any) -> None:
    """Refuse a request that is too large, and texts and whole numbers that cannot be stored."""
    left, waiting = MOST_VALUES, [(data, 0)]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, Mapping | list):
            items = (*value, *value.values()) if isinstance(value, Mapping) else tuple(value)
            left -= len(items)
            if left < 0:
                raise InvalidInput(f"The request has over {MOST_VALUES:,} values: send fewer.")
            if depth >= DEEPEST:
                raise InvalidInput(f"The request is nested deeper than {DEEPEST} levels.")
            waiting += [(item, depth + 1) for item in items]
        elif isinstance(value, str):
            if len(value) > LONGEST_TEXT:
                raise InvalidInput(
                    f"A text may have {LONGEST_TEXT:,} characters, not {len(value):,}."
                )
            if _CONTROL.search(value):
                raise InvalidInput(f"A text of the request has a control character: {value!a}.")
        elif isinstance(value, int) and abs(value) > arrays.LARGEST_COUNT:
            raise InvalidInput(f"Whole numbers of a request go up to {arrays.LARGEST_COUNT}.")
        elif isinstance(value, float) and not math.isfinite(value):
            raise InvalidInput(f"{value} is no finite number, and every number of a request is.")


# --- how it is operated ---------------------------------------------------------------------------

# The entries of a point, in C order.
Point = tuple[float, ...]


@final
@pydantic.dataclasses.dataclass(frozen=True, config=ConfigDict(extra="ignore"))
class Settings:
    """How a session is operated, stored with the session as JSON.

    Parameters
    ----------
    learner : str
        The kind of its learner.
    mode : str, default "live"
        "live", "shadow" or "frozen".
    pin : tuple of float, optional
        The point that it is pinned at.
    incumbent : tuple of float, optional
        The incumbent's point, for rounds whose request has none.
    frozen : tuple of float, optional
        The decision that is repeated while it is frozen.
    fallback : tuple of float, optional
        What is played if nothing else can be. None: the set's center.
    deadline : float, optional
        How long advisers may take, unless a request has its own. Unit: seconds.
    stale_after : float, optional
        How long a decision may wait for its feedback before that is stale. Unit: seconds.
    expire_after : int, optional
        For how many more rounds a round waits for its feedback. Unit: rounds.
    serial : int, default 0
        How often what is played was changed by hand.
    since : int, default -1
        In which round, from 0, that was done last.
    eras : tuple of tuple of str, default ()
        The names of the entries before each change of the set.
    """

    learner: str
    mode: Literal["live", "shadow", "frozen"] = "live"
    pin: Point | None = None
    incumbent: Point | None = None
    frozen: Point | None = None
    fallback: Point | None = None
    deadline: float | None = None
    stale_after: float | None = None
    expire_after: int | None = None
    serial: int = 0
    since: int = -1
    eras: tuple[tuple[str, ...], ...] = ()

    @property
    def text(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False, sort_keys=True)

    @classmethod
    def of(cls, text: str) -> Self:
        """Read JSON; keys that a later version wrote are left out."""
        try:
            return pydantic.TypeAdapter(cls).validate_json(text, strict=True)
        except ValidationError:
            raise BrokenFile("The settings were changed on disk: use an earlier copy.") from None

    @classmethod
    def shown(cls, text: str) -> Self:
        try:
            return cls.of(text)
        except BrokenFile:
            return cls("unknown")

    def changed(self, **to: Any) -> Self:
        return replace(self, serial=self.serial + 1, **to)


# --- compiling before the first round -------------------------------------------------------------

# Sessions of a store whose descriptions are read at the start.
MOST_SESSIONS = 1000
# Sessions of a store that are built at the start, one for each kind of description.
MOST_BUILT = 50
# Kinds of sessions that have played here.
_WARM: set[Hashable] = set()


def warm_up(built: Built) -> None:
    """Play a few rounds of this learner in memory, unless one of its kind has; errors are left to
    the session's own rounds.
    """
    kind = type(built.learner), built.learner.needs, _kind_of_set(built.K)
    if kind in _WARM:
        return
    _WARM.add(kind)
    with suppress(TidewolfError):
        learner = built.learner
        begun = learner.save(capabilities.beginning(learner))
        session = sessions.Session(learner, learner.load(begun))  # as from a store
        for number in range(3):
            session.play()
            _observe(session, number)
        if isinstance(learner, capabilities.LateFeedback):
            session.play(round=4)
            _observe(session, 4)
            _observe(session, 3)
        session.play()


def warm_store(store: SessionStore) -> None:
    found = set[Hashable]()
    for info in store.infos(most=MOST_SESSIONS):
        with suppress(Exception):  # deleted meanwhile, or damaged: its own requests report it
            text = getattr(store.info(info.name), "description", "")
            given = json.loads(text)  # those of the same kind have the same keys and learners
            kind = given["set"].get("kind"), *given["set"], json.dumps(given.get("learners"))
            if kind not in found and len(found) < MOST_BUILT:
                found.add(kind)
                warm_up(Description.parse(text).build())


def _kind_of_set(K: Any) -> Hashable:
    """Equal for sets whose kernels are the same: of the same classes and switches."""
    if isinstance(K, tuple):
        return frozenset(map(_kind_of_set, K))
    if not isinstance(K, ConvexSet):
        return str(K if isinstance(K, bool | str) else type(K))
    return type(K), len(K.shape), *map(_kind_of_set, K.fields().values())


def _observe(session: sessions.Session[Any], number: int) -> None:
    """A round of costs that push the same way every round, so that iterates leave the set, and of
    capacities that the center exceeds.
    """
    K = session.learner.K
    if session.learner.needs is feedback.Bandit:
        session.observe(loss_value=1.0, constraint_value=0.1, round=number)
    else:  # read-only, as those are that were read from a store: kernels differ
        costs = arrays.frozen(np.linspace(1.0, 2.0, math.prod(K.shape)).reshape(K.shape))
        most = 0.5 * float(arrays.to_numpy(K.center).max(initial=0.0)) or 0.5
        capacities = arrays.frozen(np.full(K.shape, most)) if len(K.shape) == 1 else None
        session.observe(costs=costs, capacities=capacities, round=number)
