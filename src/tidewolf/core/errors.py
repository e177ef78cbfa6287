"""Every error tidewolf raises, in one tree, and every warning.

    TidewolfError
    |-- InvalidInput (ValueError)       what was given cannot be used
    |   |-- NotFinite                   a NaN or an infinite number
    |   |-- WrongShape                  an array of another shape
    |   |-- WrongType (TypeError)       not a number, not an array, not a graph
    |   |-- EmptySet                    no point is in the set
    |   |-- NotConvex                   a function that is not convex
    |   |-- NotAMember                  a point outside the set where a member is needed
    |   |-- OtherContent                a round that was observed, or decided, on something else
    |   |-- AlreadyThere                a name that is taken
    |   `-- GraphError
    |       |-- CyclicGraph             names the cycle
    |       |-- UnreachableTarget
    |       |-- UnknownNode
    |       `-- EmptyGraph
    |-- OracleError                     a linear minimiser that lies
    |-- NotSupported                    a combination that has no method here
    |-- SolverFailed                    an LP or QP solver gave up
    |-- MissingExtra (ImportError)      an optional dependency is not installed
    |-- Interrupted                     a run that was stopped; its folder can be resumed
    |-- ClusterLost                     the scheduler of a cluster does not answer
    |-- CheckFailed (AssertionError)      a user's class fails a check of tidewolf.testing
    |-- UnknownSession (LookupError)    a name that no session has
    |-- TooMany                         more than a quota allows
    |   `-- Overloaded                  more than can be answered now
    |-- NoAnswer                        a service that cannot be reached, or is none
    `-- CheckpointError
        |-- BrokenFile                  truncated, tampered with, or not ours
        |-- OtherSettings               written by a learner with other settings
        |-- NewerFormat                 written by a newer tidewolf
        |-- OlderFormat                 written by an older one whose states do not fit
        |-- InUse                       another session writes to it
        `-- HeldElsewhere               another server holds it

    TidewolfWarning (UserWarning)
    |-- ShortHorizon                    too few rounds for a theorem's guarantee
    |   `-- FrozenRegime                so few that the theorem's settings never move
    |-- NotCached                       compiled code that cannot be kept for the next process
    |-- NegativeCapacity                a limit that no point of the set keeps
    `-- OtherVersions                   a state written on another machine or with other versions

Each message is a sentence: what was given, what is accepted, what to do.
"""

from typing import TypeVar

T = TypeVar("T")


class TidewolfError(Exception):
    """The root of every error tidewolf raises on purpose.

    Parameters
    ----------
    message : str
        A sentence: what was expected, what was received, what to do.
    setting : str, optional
        The name of the setting that it speaks of.
    **more
        What else a kind of error has, such as `holder`.
    """

    setting: str | None

    def __init__(self, *message: object, setting: str | None = None, **more: object) -> None:
        super().__init__(*message)
        self.__dict__.update(more, setting=setting)


def require(
    holds: object, error: type[TidewolfError], words: str, setting: str | None = None
) -> None:
    """Refuse what does not hold; for what costs nothing to say."""
    if not holds:
        raise error(words, setting=setting)


def refuse(holds: object, words: str, setting: str | None = None) -> None:
    """Refuse input of which something holds; for what costs nothing to say."""
    if holds:
        raise InvalidInput(words, setting=setting)


def require_some(value: T | None, error: type[TidewolfError], words: str) -> T:
    """The value if there is one; for what costs nothing to say."""
    if value is None:
        raise error(words)
    return value


class InvalidInput(TidewolfError, ValueError):
    """Invalid input."""


class NotFinite(InvalidInput):
    """A NaN or an infinite number where a finite one is needed."""


class WrongShape(InvalidInput):
    """An array of another shape than the one needed."""


class WrongType(InvalidInput, TypeError):
    """Something that is not of the kind needed."""


class EmptySet(InvalidInput):
    """A set without a single point."""


class NotConvex(InvalidInput):
    """A function that is not convex."""


class NotAMember(InvalidInput):
    """A point outside the set."""


class OtherContent(InvalidInput):
    """Other feedback or side information was given for a round that is already recorded."""


class AlreadyThere(InvalidInput):
    """The name is taken."""


class GraphError(InvalidInput):
    """A graph on which no flow can be routed."""


class CyclicGraph(GraphError):
    """A directed graph with a cycle, which `cycle` names."""

    cycle: tuple[object, ...] = ()


class UnreachableTarget(GraphError):
    """No path leads from the source to the target."""


class UnknownNode(GraphError):
    """A node that no edge touches."""


class EmptyGraph(GraphError):
    """A graph without edges."""


class OracleError(TidewolfError):
    """An oracle that answers with a point outside its set, or a worse one than is known."""


class NotSupported(TidewolfError):
    """A combination of parts for which there is no method."""


class SolverFailed(TidewolfError):
    """An LP or QP solver failed."""


class MissingExtra(TidewolfError, ImportError):
    """An optional dependency that is not installed."""


class Interrupted(TidewolfError):
    """A run that was interrupted and can be resumed."""


class ClusterLost(TidewolfError):
    """The scheduler of a cluster does not answer."""


class CheckFailed(TidewolfError, AssertionError):
    """A class that fails one of the checks in `tidewolf.testing`."""


class UnknownSession(TidewolfError, LookupError):
    """A name that no session has."""


class TooMany(TidewolfError):
    """More than a quota allows.

    Parameters
    ----------
    message : str
        A sentence.
    retry_after : float, default 1.0
        When to try again. Unit: seconds.
    setting : str, optional
        The name of the setting that it speaks of.
    """

    retry_after: float = 1.0


class Overloaded(TooMany):
    """More than can be answered now."""


class NoAnswer(TidewolfError):
    """The service cannot be reached."""


class CheckpointError(TidewolfError):
    """A saved state that cannot be continued."""


class BrokenFile(CheckpointError):
    """A file that is truncated, was tampered with, or is not ours."""


class OtherSettings(CheckpointError):
    """A file written by a learner with other settings."""


class NewerFormat(CheckpointError):
    """A file written by a newer tidewolf."""


class OlderFormat(CheckpointError):
    """A file written by an older tidewolf that this one cannot read."""


def require_format(where: object, found: int, known: int, otherwise: str) -> None:
    """Refuse a file of another format; `otherwise` says what to do with an older one."""
    if found != known:
        kind = NewerFormat if found > known else OlderFormat
        cure = "Install a newer tidewolf." if found > known else otherwise
        raise kind(f"{where} has format {found}; this tidewolf reads format {known}. {cure}")


class InUse(CheckpointError):
    """A file that another session writes to."""


class HeldElsewhere(CheckpointError):
    """A session that another server holds.

    Parameters
    ----------
    message : str
        A sentence.
    holder : str
        The server that holds it.
    setting : str, optional
        The name of the setting that it speaks of.
    """

    holder: str = ""


class TidewolfWarning(UserWarning):
    """The root of every warning tidewolf gives."""


class ShortHorizon(TidewolfWarning):
    """A horizon too short for a theorem to guarantee anything."""


class FrozenRegime(ShortHorizon):
    """A horizon so short that a theorem's settings never move from their start."""


class NotCached(TidewolfWarning):
    """Compiled code cannot be stored: every process compiles again."""


class NegativeCapacity(TidewolfWarning):
    """A capacity below 0 of an entry that no point of the set has below 0."""


class OtherVersions(TidewolfWarning):
    """A state written on another processor, with another BLAS, or with other versions of Python or
    of the packages that compute it.
    """
