"""What is asked and answered, as pydantic models: they read requests, and are the OpenAPI schema.

A request is read strictly: no key that is unknown, no text or true for a number. Numbers of entries
are left to the session, which knows the names of its set. Null is the same as absent.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self
from urllib.parse import parse_qsl

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    RootModel,
    ValidationError,
    WithJsonSchema,
)

from tidewolf.core.errors import InvalidInput
from tidewolf.experiments.models import One, Strict, refusal
from tidewolf.storage.session_store import Entry

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
Digits = BeforeValidator(_digits)
Most = Annotated[int, Field(ge=1, le=MOST, description="How many to list."), Digits]
Mode = Literal["live", "shadow", "frozen"]
Source = Literal["learner", "last", "static", "pinned", "incumbent"]
ByName = dict[str, float]


def example(**keys: Any) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [keys]})


# --- requests -------------------------------------------------------------------------------------


class Request(Strict):
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
            found: Self = cls.__pydantic_validator__.validate_python(given, context=context)
            return found
        except ValidationError as error:
            path, sentence = refusal(error, given, cls)
            keys = [str(key + 1 if isinstance(key, int) else key) for key in path]
            raise InvalidInput(f"{', '.join(keys)}{': ' * bool(keys)}{sentence}") from None


class DecisionRequest(Request):
    """Which round, and what is known before it."""

    model_config = example(round=2, unavailable=["entry 2"])
    round: Round | None = None
    time: str | int | float | None = Field(None, description="When the round is.")
    context: Any = Field(None, description="What kind of round it is, as the learner asks.")
    advice: dict[str, Numbers] | None = Field(None, description="Points of others, by name.")
    unavailable: list[str | int] | None = Field(None, description="Entries that are out.")
    deadline: Annotated[float, Field(ge=0.0, le=1e9)] | None = Field(
        None, description="How long it may take. Unit: seconds."
    )


# A request without a body.
NOTHING = DecisionRequest.read({})


class Observation(Request):
    """What per round turned out to be: numbers, or gradients or values at what was played."""

    model_config = example(round=1, costs=[1.0, 0.2, 0.5], capacities=[0.6, 0.6, 0.6])
    round: Round | None = None
    time: str | int | float | None = Field(None, description="When the round was.")
    costs: Numbers = None
    capacities: Numbers = None
    demands: OneOrMore = None
    weights: Several = None
    budgets: OneOrMore = None
    budget: Finite | None = None
    loss_gradient: Numbers = None
    constraint_value: Finite | Annotated[list[Finite], Field(min_length=1)] | None = None
    constraint_gradient: Several = None
    loss_value: Finite | None = None
    played: Numbers = None


class Observations(Request):
    """Several observations, in order; each is checked when those before it were taken."""

    observations: Annotated[
        list[Annotated[Any, WithJsonSchema({"$ref": "#/components/schemas/Observation"})]],
        Field(min_length=1),
    ]


class ObservationRequest(RootModel[Observation | Observations]):
    """One observation, or several."""

    @classmethod
    def read(cls, given: Any) -> Observation | Observations:
        return Observations.read(given) if "observations" in given else Observation.read(given)


class Migration(Request):
    """Another set, learner or static point, from the next round on."""

    model_config = example(learners=[{"name": "LyapunovDescent"}], why="Less to compute.")
    set: dict[str, Any] | None = None
    learners: One[str | dict[str, Any]] | None = None
    fallback: list[Any] | dict[str, Any] | None = Field(
        None, description="The static point; null: the center."
    )
    why: Why | None = None


class ModeChange(Request):
    """Which point is played: the learner's, the incumbent's, or the one that stands."""

    model_config = example(mode="shadow", incumbent=[0.2, 0.3, 0.5], why="First week.")
    mode: Mode
    incumbent: Numbers = Field(None, description="The point that is played in shadow mode.")
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
        if len(found) < len(pairs):
            raise InvalidInput("The query has a key twice.")
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
