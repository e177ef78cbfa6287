"""Sessions: run a learner one round at a time, save it and resume it.

    x = session.play(time=..., context=..., advice=..., forecast=...);   session.observe(...);   ...
    session.save(path);   session = Session.load(path, learner)

    with Session.open(path, learner) as session:   x = session.play();   session.observe(...);   ...
        durable: tidewolf.storage

The state alone decides the point: played twice it is the same, and rounds may be observed without
having played. Side information is given once, with the first `play` of the round, and becomes part
of the state. Different side information for the same round is refused, because the decision is
made. If `observe` refuses its input, the state is unchanged and the round can be observed again.

    session.play(round=5);   session.observe(round=3, ...);   session.observe(played=x, ...)

Feedback may come late, in any order, or never (methods/events.py): a round that is asked for by its
number leaves those before it pending. Rounds count from 0. A round that is observed twice, with the
same content, counts once. `played` is the point that was played if it was not the decision.

A session may be shared by threads: observations are processed one at a time, each with the point
that is current then, and none that was acknowledged is lost. States never change, so `play`, `save`
and the properties read one whole state without waiting for a lock.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from contextvars import copy_context
from functools import partial
from typing import Any, Generic, TypeVar, cast, final

from tidewolf import explanation, observation
from tidewolf.core import batch, checkpoint, errors, round_info
from tidewolf.core.arguments import as_items, as_kind, as_path, as_text, shown
from tidewolf.core.arrays import SILENCE, as_count, as_number, as_own
from tidewolf.core.feedback import Bandit, Feedback, FullInformation
from tidewolf.core.types import Array
from tidewolf.deadline import Advisers
from tidewolf.experts.base import AdviserFailed, asking, naming_who_fails
from tidewolf.functions.linear import Linear
from tidewolf.memory import EXPIRED, FEW, OPENED, Memory, Past, Place, RoundFeedback, Step
from tidewolf.methods import base, capabilities, late, partly_seen
from tidewolf.methods.compiled_rounds import ArrayState, Progressed, whole
from tidewolf.methods.events import (
    Event,
    Observe,
    SetInfo,
    after,
    current_round,
    deciding,
    decision,
    waiting,
)
from tidewolf.methods.kernel_functions import Functions
from tidewolf.storage import Journal, SessionStore, backend

S = TypeVar("S", bound=base.Progress)
T = TypeVar("T")

# These are made as fast as can be: each live round makes both.
_step: Any = partial(tuple.__new__, Step)
_place: Any = partial(tuple.__new__, Place)
# Rounds that are decided at once, at most.
MOST_AHEAD = 10_000


@final
class Session(AbstractContextManager["Session[Any]"], Generic[S]):
    """Run a learner one round at a time: `play` gives a decision, `observe` takes the feedback.

    The state alone decides the point: `play` called twice gives the same. A session may be
    shared by threads. `Session.open` keeps it in a database that loses no observation.

    Parameters
    ----------
    learner : Learner
        The learner that decides, such as `LyapunovDescent(K)`.
    state : State, optional
        The state to resume from, as `session.state` gives it. None: the learner's initial state.
    expire_after : int, optional
        How many rounds a pending round waits for its feedback before it expires. None: it never
        expires. Unit: rounds.

    Raises
    ------
    WrongType
        If `learner` is not a Learner, or `state` belongs to another class of learners.

    Examples
    --------
    >>> session = tw.Session(tw.LyapunovDescent(tw.sets.Simplex(3)))
    >>> session.play()  # decide first
    array([0.33333333, 0.33333333, 0.33333333])
    >>> session.observe(loss_gradient=[1.0, 0.0, 0.5], constraint_value=-0.1)
    >>> session.play().round(3), session.rounds
    (array([0.083, 0.833, 0.083]), 1)

    A durable one:

    >>> import tempfile
    >>> learner, folder = tw.LyapunovDescent(tw.sets.Simplex(3)), tempfile.TemporaryDirectory()
    >>> with folder:
    ...     with tw.Session.open(f"{folder.name}/routing.db", learner) as session:
    ...         session.observe(loss_gradient=[1.0, 0.0, 0.5], constraint_value=-0.1)
    ...     with tw.Session.open(f"{folder.name}/routing.db", learner) as session:
    ...         session.rounds, session.play().round(3)
    (1, array([0.083, 0.833, 0.083]))
    """

    def __init__(
        self, learner: base.Learner[S], state: S | None = None, *, expire_after: int | None = None
    ) -> None:
        as_kind(learner, base.Learner, "Expected a learner such as Ensemble(K)")
        if state is not None and not isinstance(state, learner.state_type):
            base.refuse_state(learner, state)
        self.expire_after = None if expire_after is None else as_count(expire_after, "expire_after")
        self._journal: Journal[S] | None = None
        self._keeper: Memory[S] | Journal[S] = Memory(
            learner, capabilities.beginning(learner) if state is None else state
        )
        # held from the point an observation is taken at to the state after it
        self._turn = threading.RLock()
        # entries with a negative capacity that were looked at
        self._asked: set[int] = set()
        # the last state whose point was given without side information
        self._shown: Any = None
        self._advisers = Advisers()
        self._past = Past(learner, late.next_round(self._now))

    def __getstate__(self) -> dict[str, Any]:
        """All but the lock, the threads of advisers and the past: a copy has its own."""
        if not isinstance(self._keeper, Memory):
            raise errors.NotSupported(
                "A durable session cannot be copied or pickled; save(path) copies its state."
            )
        with self._turn:
            own = {"_keeper": self._keeper.copy(), "_shown": whole(self._shown)}
        own["_advisers"] = self._advisers.copy()
        return {**vars(self), **own, "_turn": None, "_past": None}

    def __setstate__(self, fields: dict[str, Any]) -> None:
        self.__dict__.update(fields, _turn=threading.RLock())
        self._past = Past(self.learner, late.next_round(self._now))

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | SessionStore,
        learner: base.Learner[S],
        *,
        snapshot_every: int = 100,
        keep_history: bool = True,
        read_only: bool = False,
        expire_after: int | None = None,
        name: str = "session",
    ) -> "Session[S]":
        """Open the durable session at `path`, a new one if there is no file. Killed at any
        instruction, it resumes, bit for bit on the same machine and versions.

        When `observe` returns, the observation survives the process and, if the disk honours fsync,
        a power cut. One session writes at a time. If the file was deleted, the next observation is
        refused. A file written under other versions of Python or of libraries gives a warning.

        Parameters
        ----------
        path : str, path or SessionStore
            The file, in a folder that is there; `PATH-wal`, `PATH-shm` and `PATH-lock` come beside
            it. Or postgresql://USER:PASSWORD@HOST/DATABASE, where many sessions are kept by name.
        learner : Learner
            The learner that decides, with the settings the file was written under.
        snapshot_every : int, default 100
            After how many events (observations, decisions made ahead, side information) the state
            is kept too: opening applies at most so many again. Unit: events.
        keep_history : bool, default True
            Whether observations stay in the file that the last snapshot knows of; False keeps it
            small.
        read_only : bool, default False
            Whether to look only, at what the session was when it was opened; also from a folder
            that cannot be written, and while another session writes.
        expire_after : int, optional
            How many rounds a pending round waits for its feedback before it expires. None: it never
            expires. Unit: rounds.
        name : str, default "session"
            Which of the sessions of a database it is; a file has one.

        Returns
        -------
        Session
            To be closed, or used in a `with` statement.

        Raises
        ------
        InUse, OtherSettings
            While another session writes to the file, or if another learner wrote it.
        BrokenFile, NewerFormat, OlderFormat
            If the file is changed, cut short, or of a tidewolf that this one cannot read.
        """
        session, kept = cls(learner, expire_after=expire_after), backend(path, name, read_only)
        session._keeper = session._journal = Journal(
            kept, learner, snapshot_every=snapshot_every, keep_history=keep_history
        )
        session._past = Past(learner, late.next_round(session._now), OPENED, FEW)
        return session

    @property
    def learner(self) -> base.Learner[S]:
        """The learner that decides."""
        return self._keeper.learner

    @property
    def _now(self) -> S:
        """The state now, which the keeper alone holds: an interrupt cannot part the two."""
        state: Any = self._keeper.place.state
        if isinstance(state, ArrayState):
            with self._turn:  # made of what a kernel left, once
                state = state.state
        return cast(S, state)

    @property
    def _progress(self) -> Any:
        return self._keeper.place.state

    @property
    def _here(self) -> Step:
        place = self._keeper.place
        return Step(late.next_round(place.state), place)

    def _ask(self, do: Callable[[], T]) -> T:
        """Once more if an adviser failed, which is skipped from then on. In a context of its own
        (contextvars), so that an interrupt that keeps `asking` from ending changes no later call.
        """

        def ask() -> T:
            if not self._advisers.in_threads:
                try:
                    with asking(naming_who_fails):
                        return do()
                except AdviserFailed as failed:
                    self._advisers.failed(failed, late.next_round(self._now))
            return do()

        return copy_context().run(ask)

    def _commit_next(
        self, info: round_info.RoundInfo | None, until: float | None, then: Sequence[Event] = ()
    ) -> None:
        """Commit the next round with its side information, then apply `then`. Once decisions have
        had a deadline, or an adviser has failed, each adviser that is late or fails is skipped, and
        its name is kept.
        """
        state, known = self._now, info or round_info.RoundInfo()
        heard = self._advisers.hear(lambda: after(self.learner, state, SetInfo(known)), until)
        self._advisers.skip(heard.skipped, late.next_round(state))
        skipped = tuple({**dict.fromkeys(self._skipped_already), **heard.skipped})
        events: list[Event] = []
        if skipped or info is not None:
            events.append(SetInfo(known.with_skipped(skipped) if skipped else known))
        with heard.again():
            if events or then:
                self._take([*events, *then])
            else:
                self._past.add(self._here)
                self._keeper.place = self._keeper.place.committed(self.learner)

    def _take(
        self,
        events: Sequence[Event],
        content: str | None = None,
        observed: RoundFeedback | None = None,
    ) -> None:
        """Apply all of these events, or none: the one way from one state to the next. `observed`
        is what explanations need of the feedback.
        """
        keeper, at_once = self._keeper, not self._advisers.in_threads
        self._past.add(self._here._replace(events=events, observed=observed))
        if not at_once or observed is None:
            keeper.take(events, content, commit_next=at_once)
            return
        try:
            with asking(naming_who_fails):
                keeper.take(events, content)
        except AdviserFailed as failed:  # of the next round: this one is kept
            keeper.take(events, content, commit_next=False)
            self._advisers.failed(failed, late.next_round(self._now))

    def close(self) -> None:
        """Close the database. Does nothing for a session in memory; safe to call twice."""
        if self._journal is not None:
            with self._turn:
                self._journal.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def migrate(self, learner: base.Learner[S]) -> None:
        """Replace the learner by another of the same kind: over a set that changed, such as a
        network with a new link, or with other settings.

        What still exists is kept by name: the points that decisions are made of, the weights of
        experts, gradient norms, the violation so far; bounds are closed. The current round keeps
        its number and, if the set still contains it, its decision. Its side information may be
        given again.
        Feedback on rounds that are pending is given in the entries of the new set; those that
        played an entry that is gone are lost.

        Parameters
        ----------
        learner : Learner
            The learner that decides from now on: an `Ensemble` in place of an `Ensemble`, or a
            `LyapunovDescent` in place of a `LyapunovDescent`.

        Raises
        ------
        InvalidInput
            If the learner is of another kind, or entries cannot be matched by name; the session is
            unchanged.
        NotSupported
            If learners of this kind cannot move to another set.

        Examples
        --------
        >>> links = [("s", "a"), ("a", "t"), ("s", "t")]
        >>> K = tw.sets.FlowPolytope.from_edges(links[:2], source="s", target="t")
        >>> session = tw.Session(tw.Ensemble(K))
        >>> session.observe(costs=[1.0, 1.0])
        >>> K = tw.sets.FlowPolytope.from_edges(links, source="s", target="t")
        >>> session.migrate(tw.Ensemble(K))
        >>> session.play(), session.rounds
        (array([1., 1., 0.]), 1)
        """
        as_kind(learner, base.Learner, "Expected a learner such as Ensemble(K)")
        with self._turn, SILENCE:
            before = self._now if self._advisers.is_busy else self.state
            state = capabilities.migrated(learner, before, self.learner)
            past = self._past.migrated(learner, self._here)
            try:
                self._keeper.migrate(learner, state)
                self._asked = set()
            finally:
                if self._now is not before:
                    self._past = past

    def rollback(self, round: int) -> None:
        """Go back to the moment when this round became the next one: before it, or any later round,
        was decided or observed. All feedback since then is removed. Rounds that were pending then
        are pending again, and the certificate is that of the moment. To correct late feedback, go
        back to the round that was next when it came: for feedback on round 5 that came right after
        `play(round=8)`, to round 9 or before.

        A session in memory goes back up to 100 rounds; a durable one to any that its history
        holds, and removes what came later from its file.

        Parameters
        ----------
        round : int
            The number of the round, from 0.

        Raises
        ------
        InvalidInput
            If the round is in the future, or too long ago to be remembered.

        Examples
        --------
        >>> session = tw.Session(tw.LyapunovDescent(tw.sets.Simplex(2)))
        >>> for cost in (0.0, 1.0, 2.0):
        ...     session.observe(costs=[cost, 1.0])
        >>> session.rollback(1)
        >>> session.rounds
        1
        """
        number = as_count(round, "The round to go back to", least=0)
        with self._turn, SILENCE:
            if number > (upcoming := late.next_round(self._now)):
                raise errors.InvalidInput(f"Round {number} has not come: {upcoming} is next.")
            self._shown, before = None, self._now
            past, then = self._past.back_to(number, self._here)
            try:
                self._keeper.rollback(number, then)
            finally:
                if self._now is not before:
                    self._past = past

    def history(self) -> Iterator[Feedback]:
        """The feedback that a durable session observed and still has, oldest first.

        Returns
        -------
        iterator of Feedback
            `FirstOrder`, `Bandit` or `FullInformation`, as the learner needs it.

        Raises
        ------
        NotSupported
            For a session in memory, which keeps no history.

        Examples
        --------
        >>> import tempfile
        >>> learner = tw.LyapunovDescent(tw.sets.Simplex(3))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with tw.Session.open(f"{folder}/routing.db", learner) as session:
        ...         session.observe(loss_gradient=[1.0, 0.0, 0.5], constraint_value=-0.1)
        ...         [seen.loss_gradient for seen in session.history()]
        [array([1. , 0. , 0.5])]
        """
        words = "Only a session of Session.open(...) keeps its history."
        return errors.require_some(self._journal, errors.NotSupported, words).history()

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        learner: base.Learner[S],
        *,
        expire_after: int | None = None,
    ) -> "Session[S]":
        """The session saved at `path`, to resume from: bit for bit on the same machine and
        versions.

        Parameters
        ----------
        path : str or path
            The file that `save` wrote.
        learner : Learner
            The learner that decides, with the settings the file was written under.
        expire_after : int, optional
            How many rounds a pending round waits for its feedback before it expires. None: it never
            expires. Unit: rounds.

        Returns
        -------
        Session
            In memory: it writes nothing until it is saved again.

        Raises
        ------
        OtherSettings
            If the file was written by a learner with other settings.
        BrokenFile, NewerFormat, OlderFormat
            If the file is changed, cut short, or of a tidewolf that this one cannot read.

        Examples
        --------
        >>> import tempfile
        >>> learner = tw.LyapunovDescent(tw.sets.Simplex(3))
        >>> session = tw.Session(learner)
        >>> session.observe(loss_gradient=[1.0, 0.0, 0.5], constraint_value=-0.1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     session.save(f"{folder}/routing")
        ...     again = tw.Session.load(f"{folder}/routing", learner)
        >>> bool((again.play() == session.play()).all())
        True
        """
        session = cls(learner, expire_after=expire_after)
        try:
            data = checkpoint.read(as_path(path, "The path of a session"))
            state = learner.load(data, source=str(path))
            session._keeper = Memory(learner, state, *checkpoint.session_of(data))
            session._past = Past(learner, late.next_round(state))
        except OSError as error:
            raise errors.CheckpointError(f"{path} cannot be read: {error.strerror}.") from error
        except errors.CheckpointError as error:
            raise type(error)(f"{path}: {error}") from None
        return session

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to `path`, whole or not at all; `Session.load` resumes from it.

        Parameters
        ----------
        path : str or path
            The file; one that is there is replaced.

        Raises
        ------
        CheckpointError
            If it cannot be written, such as on a full disk; the old file stays.
        """
        with self._turn:  # all of one moment
            learner, state, info_ids = self.learner, self._now, self._keeper.place.info_ids
            contents = dict(self._keeper.contents) if self._keeper.numbered else None
        data = checkpoint.with_session(learner.save(state), info_ids, contents)
        try:
            checkpoint.write(as_path(path, "The path of a session"), data)
        except OSError as error:
            raise errors.CheckpointError(f"{path} cannot be written: {error.strerror}.") from error

    @property
    def state(self) -> S:
        """All that the learner remembers; a value to keep, or to branch another session from."""
        now = self._now
        if capabilities.is_committed(self._keeper.learner, now):
            return now
        with self._turn, SILENCE:
            self._ask(lambda: self._commit_next(None, self._advisers.until()))
        return self._now

    @property
    def rounds(self) -> int:
        """Rounds observed so far."""
        return int(self._progress.t)

    def __len__(self) -> int:
        return self.rounds

    @property
    def round(self) -> int:
        """The number, from 0, of the current round: the newest decided round while it is pending,
        else the next one.
        """
        return current_round(self._progress)

    @property
    def pending(self) -> tuple[int, ...]:
        """The numbers of the rounds that were decided and have no feedback yet, oldest first."""
        return tuple(one.round for one in waiting(self._progress))

    @property
    def imputed_costs(self) -> int:
        """Costs that were not seen and imputed so far: the cost seen last stands, before any the
        mean of those seen in the round.

        Examples
        --------
        >>> K = tw.sets.SimplexProduct([3], labels=["a", "b", "c"], least=0.01)
        >>> session = tw.Session(tw.LyapunovDescent(K))
        >>> session.observe(costs={"a": 1.2, "c": 0.9})
        >>> session.imputed_costs
        1
        """
        state = self._progress
        return int(
            getattr(getattr(state, "since", state), "costs", partly_seen.LastCosts()).imputed
        )

    @property
    def last_played(self) -> Array | None:
        """What was played in the round that was observed last; None if that is not known."""
        with self._turn:
            seen = self._past.newest_feedback(self._here)
            return None if seen is None else seen.x

    @property
    def last_functions(self) -> tuple[batch.Batch, batch.Batch] | None:
        """The loss and the constraint that were observed last, costs that were not seen imputed;
        None if only numbers were observed.
        """
        with self._turn:
            newest = self._past.newest_feedback(self._here)
            seen = None if newest is None else newest.last
            return (seen.losses, seen.constraints) if isinstance(seen, FullInformation) else None

    @property
    def oracle_calls(self) -> int:
        """How often the set's linear minimiser was asked so far."""
        return self._now.calls

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes in sentences, such as a horizon that was passed or advisers that missed
        deadlines."""
        return self.notes_from(0)

    def notes_from(self, first: int) -> tuple[str, ...]:
        """The same with rounds counted from another number than 0.

        Parameters
        ----------
        first : int
            The number of the first round, such as 1 in files and HTTP.

        Returns
        -------
        tuple of str
            One sentence each.
        """
        called, absent = capabilities.adviser_in_words, self._advisers.absent
        skipped = [one.in_words(called(self.learner, name)) for name, one in absent.items()]
        return (*self.learner.notes(self._now), *self._expired_in_words(first), *skipped)

    def _expired_in_words(self, first: int = 0) -> tuple[str, ...]:
        if not (lost := getattr(self._now, "lost", 0)):
            return ()
        rounds = sorted(n + first for n, it in self._keeper.contents.items() if it == EXPIRED)
        which = f": {', '.join(map(str, rounds[-5:]))}" if rounds else ""
        which = which if len(rounds) == lost <= 5 else which.replace(":", ", last", 1)
        return (f"{lost:,} round{'s' * (lost > 1)} expired without feedback{which}.",)

    @property
    def overrides(self) -> late.Overrides:
        """What overrides cost: the totals of rounds in which `played` was not the decision, at what
        was played and at the decision.

        Examples
        --------
        >>> session = tw.Session(tw.LyapunovDescent(tw.sets.Simplex(2)))
        >>> session.observe(costs=[1.0, 0.0], played=[1.0, 0.0])
        >>> session.overrides.saved_loss
        0.5
        """
        state = self._progress
        found: late.Overrides = getattr(
            getattr(state, "since", state), "overrides", late.Overrides()
        )
        return found

    def __repr__(self) -> str:
        state = self._now
        return f"Session of {self.learner!r}: {state.t} rounds, {state.calls} oracle calls"

    def certificate(self) -> base.Bound:
        """Upper bounds on the regret and on the total violation of the rounds observed so far. They
        take a few oracle calls.

        Returns
        -------
        Bound
            `regret` below 0: the decisions were cheaper than every fixed decision that satisfies
            all constraints. `violation` is None, with the reason, if no decision can satisfy them
            all.

        Raises
        ------
        NotSupported
            If the learner has bounds for whole runs only.

        Examples
        --------
        >>> session = tw.Session(tw.LyapunovDescent(tw.sets.Simplex(2)))
        >>> for t in range(50):  # what is cheap changes slowly
        ...     session.observe(costs=[1.0, 0.0] if t < 25 else [0.0, 1.0])
        >>> session.certificate().regret < 10.0
        True
        """
        return base.bound_so_far(self.learner, self.state)

    def explain(
        self, *, round: int | None = None, names: Sequence[str] | None = None
    ) -> explanation.Explanation:
        """Explain a decision: how far it moved, which experts moved it, the binding constraints,
        what is expected of it, and the bounds.

        Parameters
        ----------
        round : int, optional
            A pending round. None: the current round.
        names : sequence of str, optional
            What the entries of a point are called. None: as the set calls them.

        Returns
        -------
        Explanation
            To be printed, or taken as plain numbers with `to_dict()`. What is not known, such as
            what moved a decision before the session was loaded, is reported as unknown.

        Raises
        ------
        InvalidInput
            If the round is not pending or current, or the names are not one for each entry.

        Examples
        --------
        >>> session = tw.Session(tw.LyapunovDescent(tw.sets.Simplex(3)))
        >>> session.observe(costs=[1.0, 0.0, 0.5], capacities=[1.0, 0.5, 1.0])
        >>> why = session.explain(names=["coal", "sun", "gas"])
        >>> for line in str(why).splitlines()[:2]:
        ...     print(line)
        Round 1 (counted from 0): LyapunovDescent on Simplex, observed rounds: 1.
        Decision  sun: 0.833, coal: 0.0833, gas: 0.0833
        """
        number = None if round is None else as_count(round, "The round to explain", least=0)
        if names is not None:
            names = [as_text(n, "A name of an entry") for n in as_items(names, "names", '["a"]')]
        with self._turn, SILENCE:  # the state and its history are of one moment
            number = current_round(self._now) if number is None else number
            if number == late.next_round(self._now):
                _ = self.state  # committed
            absent = self._advisers.absent.items()
            skipped = {name: one.why for name, one in absent if one.last == number}
            past, journal, steps = self._past, self._journal, list[Any]()
            is_known = past.is_whole or past.decision_of(number, self._here)[1].round is not None
            if journal is not None and number > 0 and not is_known:
                with suppress(errors.TidewolfError):
                    steps = journal.way()
                self._past = explanation.rebuilt(self.learner, steps, past.came)
            known = self._past, self._here, number, names, skipped
            return explanation.explained(self.learner, *known, self._expired_in_words())

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
    ) -> Array:
        """Return the decision for the current round, or for a later one. Repeated calls return the
        same decision.

        Side information is given with the first call of a round; learners that do not use it ignore
        it. A durable session stores it before it returns. Asking for a later round decides all
        rounds before it too; they are then pending.

        Parameters
        ----------
        round : int, optional
            The number of the round, from 0. None: the current round.
        time : float, str or datetime, optional
            When the round is: a number of seconds, a date in ISO form, or a datetime.
        context : int or array, optional
            The kind of the round, as the learner's context expects it.
        advice : mapping, optional
            Proposed points by name, each an array or given as costs are. None, or a point with a
            NaN: absent.
        forecast : FullInformation or (loss, constraint), optional
            The functions that are predicted for the round.
        unavailable : sequence of str or int, optional
            Entries that are out of service, by name or index: the decision is 0 there.
        deadline : float, optional
            Time limit for advisers. An adviser that is late or fails is skipped in this round.
            None: the last deadline that was given, else no limit. Unit: seconds.

        Returns
        -------
        array
            A point of the learner's set, read-only.

        Raises
        ------
        InvalidInput
            If the decision was made with other side information, the round is over, or no feasible
            decision avoids the unavailable entries.
        NotSupported
            If rounds would be pending and the learner takes feedback in order only.
        CheckpointError
            If a durable session could not store the side information.

        Examples
        --------
        >>> session = tw.Session(tw.LyapunovDescent(tw.sets.Box([0.0, 0.0], [1.0, 3.0])))
        >>> session.play()
        array([0.5, 1.5])
        >>> session.play(time="2026-03-01T12:00")  # of no use to this learner
        array([0.5, 1.5])
        >>> session.play(round=2)
        array([0.5, 1.5])
        >>> session.pending
        (0, 1, 2)
        """
        now, info = self._keeper.place.state, None
        if isinstance(now, ArrayState) and (
            round is time is context is advice is forecast is unavailable is deadline is None
        ):
            self._shown = now
            return now.x
        if isinstance(advice, Mapping):
            advice = {
                name: observation.by_name(self.learner, x, f"The advice {shown(name)}", gaps=True)
                for name, x in advice.items()
            }
        if not time is context is advice is forecast is unavailable is None:
            info = round_info.RoundInfo(time, context, advice, forecast, unavailable)
            observation.require_fitting(self.learner, info)
        number = None if round is None else as_count(round, "The round", least=0)
        if deadline is not None:
            deadline = as_number(deadline, "The deadline", least=0.0)
        elif info is None and number is None and not waiting(state := self.state):
            self._shown = state
            return self.learner.act(state)
        until = self._advisers.until(deadline)
        with self._turn, SILENCE:
            if deadline is not None:
                self._advisers.limit(deadline)
            return self._ask(lambda: self._decision(number, info, until))

    def _decision(
        self, number: int | None, info: round_info.RoundInfo | None, until: float | None
    ) -> Array:
        state, upcoming = self._now, late.next_round(self._now)
        is_shown = whole(self._shown) is state
        number = current_round(state) if number is None else number
        own = decision(state, number)
        if own is not None:
            self._require_info(number, info)
        elif number > upcoming or (number == upcoming and waiting(state)):
            errors.refuse(
                number - upcoming > MOST_AHEAD,
                f"Round {number} is more than {MOST_AHEAD} rounds after the next, {upcoming}.",
            )
            if not self._advisers.in_threads:
                self._take(deciding(state, number, info, self.expire_after))
            else:
                for one in range(upcoming, number + 1):
                    then = deciding(self._now, one, None, self.expire_after)
                    self._commit_next(info if one == number else None, until, then)
            own = waiting(self._now)[-1]
        if own is not None:
            return own.x
        if number < upcoming:
            raise errors.InvalidInput(f"Round {number} {self._over(number)}; {upcoming} is next.")
        if number in self._keeper.place.info_ids and (is_shown or not self._skipped_already):
            self._require_info(number, info)
        elif info is not None:
            if is_shown:
                self._require_same_point(state, info, until)
            self._commit_next(info, until)
        elif not capabilities.is_committed(self.learner, state):
            self._commit_next(None, until)
        if info is None:
            self._shown = self._now
        return self.learner.act(self._now)

    @property
    def _skipped_already(self) -> tuple[str, ...]:
        """Experts skipped when the next round was committed without side information."""
        info = self._past.next_info(self._here)
        return () if info is None or not info.says_nothing else info.skipped or ()

    def _require_info(self, number: int, info: round_info.RoundInfo | None) -> None:
        if info is None:
            return
        given, decided_on = info.identity or "", self._keeper.place.info_ids.get(number)
        if not given or given != decided_on:
            when = "before this was" if decided_on is None else "when something else was"
            raise errors.OtherContent(
                f"Round {number} was decided {when} known; rollback({number}) to decide it again."
            )

    def _over(self, number: int) -> str:
        if self._keeper.content_of(number) == EXPIRED:
            return "expired: its feedback came too late (expire_after)"
        return "was observed already"

    def _require_same_point(
        self, state: S, info: round_info.RoundInfo, until: float | None
    ) -> None:
        known = partial(capabilities.with_info, self.learner, state, info)
        with self._advisers.hear(known, until).again():
            is_same = self.learner.act(state) == self.learner.act(known())
        errors.require(
            bool(is_same.all()),
            errors.OtherContent,
            f"Round {late.next_round(state)} was decided before this was known, which changes "
            "it: rollback to decide it again.",
        )

    def observe(
        self,
        feedback: Feedback | None = None,
        *,
        round: int | None = None,
        played: Array | None = None,
        costs: Array | None = None,
        capacities: Array | None = None,
        weights: Array | None = None,
        budgets: float | Array | None = None,
        loss: batch.Batch | None = None,
        constraint: batch.Batch | Sequence[batch.Batch] | None = None,
        loss_gradient: Array | None = None,
        constraint_value: float | Array | None = None,
        constraint_gradient: Array | None = None,
        loss_value: float | None = None,
        spend: Mapping[str, Any] | None = None,
    ) -> None:
        """Learn from the feedback on a decision: of the current round, or of a pending one.

        Give one of these: `costs`, `capacities`, and `weights` with `budgets`; functions, as `loss`
        and `constraint`;
        gradients, as `loss_gradient` and `constraint_value`, with `constraint_gradient` if that
        value is positive; for bandit learners `loss_value` and `constraint_value`; or a feedback
        object. A round without capacities, or without a constraint, is unconstrained. If the input
        is refused, the session is unchanged and the round can be observed again. A round that is
        observed twice, by its number and with the same content, counts once.

        Parameters
        ----------
        feedback : Feedback, optional
            A `FirstOrder`, `Bandit` or `FullInformation`, as the learner needs it.
        round : int, optional
            The number of the round, from 0: the current one, or a pending one. None: the current
            one.
        played : array, optional
            The point of the set that was played if it was not the decision. Gradients are those at
            this point, and functions are evaluated there. None: the decision.
        costs : array, Series or mapping, optional
            A linear loss: the cost per unit of each entry. A mapping {name: number} or a pandas
            Series is put in the order of the set's `names`. On simplices, names that are missing
            were not seen, and their last cost stands (`imputed_costs` counts them).
        capacities : array, Series or mapping, optional
            An upper limit on each entry.
        weights : array, Series or mapping, optional
            A constraint <weights, x> <= budgets; several are a list of rows. Beside capacities and
            a constraint, all hold.
        budgets : float or array, optional
            What the weighted sum may be at most; one for each row if there are several.
        loss, constraint : Batch, optional
            The functions of one round, or of several rounds that shared the point. (For bandit
            learners: of the points of `learner.acts`.) Several constraints per round are a list of
            batches.
        loss_gradient : array, optional
            The gradient of the loss at the point.
        constraint_value : float, optional
            The value of the constraint at the point; above 0 it is violated. With `per_constraint`
            also an array, one value per constraint.
        constraint_gradient : array, optional
            The gradient of the constraint itself at the point, not of its positive part; one per
            constraint if there are several values.
        loss_value : float, optional
            The value of the loss at the point.
        spend : mapping, optional
            What the round spends of each of the learner's budgets, by their names: the amount per
            unit of each entry, given as costs are, or a function of one round. It goes with
            `costs` or `loss`; the plan of the budget is subtracted.

        Raises
        ------
        InvalidInput
            If the feedback is empty, of several kinds, of another shape or not finite; or if the
            round was never decided, or was observed with other content.
        NotAMember
            If `played` is outside the set.
        NotSupported
            If the learner needs more feedback, or takes feedback in order only.
        CheckpointError
            If a durable session could not store the feedback.

        Examples
        --------
        >>> session = tw.Session(tw.LyapunovDescent(tw.sets.Simplex(3)))
        >>> costs, capacities = [1.0, 0.0, 0.5], [1.0, 0.5, 1.0]
        >>> for _ in range(10):
        ...     session.observe(costs=costs, capacities=capacities)
        >>> for _ in range(10):  # the same, for other functions, too
        ...     session.observe(
        ...         loss=tw.functions.Linear.one(costs),
        ...         constraint=tw.functions.Capacity.one(capacities),
        ...     )
        >>> session.rounds, bool(session.play()[1] < 0.6)
        (20, True)
        >>> x = session.play(round=21)  # round 20 waits
        >>> session.observe(round=20, costs=costs, played=[0.5, 0.0, 0.5])
        >>> session.pending, session.state.overrides.rounds
        ((21,), 1)
        """
        if (
            spend is weights is budgets is loss_value is None
            and loss_gradient is constraint_value is constraint_gradient is None
            and feedback is played is loss is constraint is None
            and self._observe_costs(costs, capacities, round)
        ):
            return
        learner = self._keeper.learner
        given = {
            "costs": costs,
            "capacities": capacities,
            "weights": weights,
            "budgets": budgets,
            "loss": loss,
            "constraint": constraint,
            "loss_gradient": loss_gradient,
            "constraint_value": constraint_value,
            "constraint_gradient": constraint_gradient,
            "loss_value": loss_value,
        }
        number = None if round is None else as_count(round, "The round", least=0)
        with self._turn:
            last = before = None
            if costs is not None:
                given["costs"], last, before = observation.imputed(learner, self._last_costs, costs)
            seen = observation.given_feedback(learner, feedback, given)
            if spend is not None:
                at = current_round(self._progress) if number is None else number
                seen = observation.charged(learner, self.state, seen, spend, at)
            kernel = capabilities.kernel_of(learner) if played is None else None
            functions = None if kernel is None else kernel.functions_of(seen)
            if functions is not None and self._observe_at_once(kernel, functions, seen, number):
                return
            if played is not None:
                what = "What was played"
                played = as_own(observation.point(learner, played, what), what)
            with SILENCE:
                self._observe(number, seen, played, last, before)

    @property
    def _last_costs(self) -> Any:
        state = self._progress
        last = getattr(getattr(state, "since", state), "costs", None)
        if last is None or last.values is not None:
            return last
        loss = (self.last_functions or (None,))[0]
        return last._replace(values=loss.C[0]) if isinstance(loss, Linear) else last

    def _observe_costs(self, costs: Any, capacities: Any, number: Any) -> bool:
        """Observe per round of costs and capacities through the learner's kernel; False if that
        cannot be.
        """
        kernel = capabilities.kernel_of(self._keeper.learner)
        most = costs if capacities is None else capacities
        if kernel is None or not (
            observation.is_vector(costs, kernel.n) and observation.is_vector(most, kernel.n)
        ):
            return False
        functions = Functions.costs(costs, capacities)
        return self._observe_at_once(kernel, functions, functions, number)

    def _observe_at_once(self, kernel: Any, functions: Functions, given: Any, number: Any) -> bool:
        """Observe per round of these functions through the learner's kernel, if rounds come one by
        one and nothing is known before them; False if that cannot be.
        """
        keeper, journal = self._keeper, self._journal
        if self._advisers.in_threads or not (number is None or type(number) is int):
            return False
        with self._turn:
            place = keeper.place
            if not isinstance(place.state, ArrayState):
                in_order = not (keeper.numbered or place.info_ids)
                begins = in_order if journal is None else not kernel.advisers
                if not (begins and kernel.plays_live and kernel.takes(place.state)):
                    return False
                place = keeper.place = place._replace(state=kernel.begin(place.state))
            before = place.state
            # a session in memory notes no contents of numbered rounds here
            if not before.is_plain or not (
                number is None or (journal is not None and number == before.number)
            ):
                return False
            found: Progressed = kernel.play(before, functions, 0, 1)
            if found.done:
                step = _step((before.number, place, (), given))
                self._past.add(step)
                if journal is None:
                    keeper.place = _place((found.after, {}, 0, b""))
                else:
                    journal.take_arrays(found, step, number is not None)
            return found.done > 0

    def _observe(
        self,
        number: int | None,
        seen: Feedback,
        played: Array | None,
        last: Any = None,
        costs: Array | None = None,
    ) -> None:
        """`last` is what is remembered of costs after this, `costs` those of it that were seen."""
        keeper, now = self._keeper, self._progress
        learner, pending, current = keeper.learner, waiting(now), current_round(now)
        is_numbered = number is not None or keeper.numbered or pending
        content = observation.content(seen, played, costs) if is_numbered else None
        number = current if number is None else number
        own = decision(now, number) if pending else None
        if own is None and number != current:
            self._require_same_content(number, content)
            return
        is_committed = isinstance(now, ArrayState)
        before = now if is_committed or own is not None else self.state
        x = now.x if is_committed else learner.act(before) if own is None else own.x
        if played is not None:
            observation.require_member(learner, played)
            if bool((played == x).all()):
                played = None
        reads = self.state if own is not None and learner.needs is Bandit else before
        arrival = observation.arrival(
            learner, reads, number, seen, x, played, bool(pending), self._asked, last
        )
        events = deciding(before, number, None, self.expire_after) if pending and not own else []
        errors.refuse(
            self._progress is not before, "A function called observe while it was evaluated."
        )
        is_committed = is_committed or capabilities.is_committed(learner, before)
        point = explanation.played_point(learner, before, seen, x) if played is None else played
        events.append(Observe(arrival, is_committed))
        with base.few_threads(learner.K):
            copy_context().run(self._take, events, content, RoundFeedback(number, seen, point))

    def _require_same_content(self, number: int, content: str | None) -> None:
        errors.refuse(
            number >= late.next_round(self._now),
            f"Round {number} was not decided yet: call play(round={number}) first.",
        )
        was, why = self._keeper.content_of(number), " with other content, which is kept"
        if was == EXPIRED:
            why = ""
        elif was is None or not content:
            why = ", and its content is not remembered"
        elif was == content:
            return
        raise errors.OtherContent(f"Round {number} {self._over(number)}{why}: nothing was learned.")
