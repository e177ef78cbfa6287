"""What each address asks of the sessions: a line or two each.

What a body must look like is said by `Sessions`, in the library's own sentences; here are the keys
of queries, what a token's prefix hides, and the quotas that depend on what a body says.
"""

from __future__ import annotations

import re
import threading
from contextlib import AbstractContextManager
from typing import final

from tidewolf import __version__
from tidewolf.core.errors import TooMany, UnknownSession
from tidewolf.service.answers import Answer, page
from tidewolf.service.endpoints import Answered, Asked
from tidewolf.service.models import AuditQuery, HistoryQuery, ListQuery
from tidewolf.service.overload import Traffic
from tidewolf.service.problems import Refused
from tidewolf.service.quotas import Quotas
from tidewolf.service.replies import Reply
from tidewolf.service.request_bodies import as_object
from tidewolf.service.sessions import Sessions
from tidewolf.service.strict_json import dumps

_ROUND = re.compile(rb'"round"\s*:\s*(\d{1,15})')
_LONG = (b'"observations"', b"\\")
"""What a body has that may take long, or whose keys may be written in another way."""
_SHORT = 1 << 14
"""Bytes of a body that is read at once."""
_METRICS = b"text/plain; version=0.0.4; charset=utf-8"


def _json(reply: Reply) -> Answered:
    """A reply as JSON, with the version."""
    return Answer(reply.status, dumps({**reply.body, "version": __version__})), reply.after


@final
class Handlers:
    """What each address asks of the sessions.

    Parameters
    ----------
    sessions : Sessions
        All of them.
    quotas : Quotas
        What each token may ask.
    traffic : Traffic
        What is under way.
    """

    def __init__(self, sessions: Sessions, quotas: Quotas, traffic: Traffic) -> None:
        self._sessions, self._quotas, self._traffic = sessions, quotas, traffic
        self._making = threading.Lock()

    def at_once(self, asked: Asked) -> AbstractContextManager[object] | None:
        """The session of a request, held, where it takes less time than a thread would."""
        body = asked.body
        if len(body) > _SHORT or any(word in body for word in _LONG):
            return None
        found = _ROUND.search(body)
        return self._sessions.held_at_once(asked.name, int(found[1]) if found else 1)

    def decide(self, asked: Asked) -> Answered:
        body = as_object(asked.body, may_be_empty=True)
        return _json(self._sessions.decide(asked.name, body, asked.caller))

    def observe(self, asked: Asked) -> Answered:
        body = as_object(asked.body)
        many = body.get("observations")
        self._quotas.take_observations(asked.caller.who, len(many) if isinstance(many, list) else 1)
        return _json(self._sessions.observe(asked.name, body, asked.caller))

    def decision(self, asked: Asked) -> Answered:
        return _json(self._sessions.decision(asked.name, asked.round))

    def get(self, asked: Asked) -> Answered:
        return _json(self._sessions.get(asked.name))

    def put(self, asked: Asked) -> Answered:
        body = as_object(asked.body)
        if self._quotas.sessions is None:
            return _json(self._sessions.put(asked.name, body, asked.caller))
        with self._making:
            self._require_room(asked, self._quotas.sessions)
            return _json(self._sessions.put(asked.name, body, asked.caller))

    def _require_room(self, asked: Asked, most: int) -> None:
        """Refuse one session more than a token may have; one that is there already is none."""
        prefix = asked.caller.prefix
        there = self._sessions.list(prefix, "", most).body["sessions"]
        if len(there) < most or any(each["name"] == asked.name for each in there):
            return
        try:
            self._sessions.get(asked.name)
        except UnknownSession:
            raise TooMany(
                f"This token may have {most:,} sessions, and has as many: delete one first.",
                retry_after=60.0,
            ) from None

    def delete(self, asked: Asked) -> Answered:
        return _json(self._sessions.delete(asked.name, asked.query.why, asked.caller))

    def list(self, asked: Asked) -> Answered:
        query: ListQuery = asked.query
        prefix, own = query.prefix, asked.caller.prefix
        if own.startswith(prefix):
            prefix = own
        elif not prefix.startswith(own):
            return _json(Reply(200, {"sessions": []}, None))
        return _json(self._sessions.list(prefix, query.after, query.most))

    def history(self, asked: Asked) -> Answered:
        query: HistoryQuery = asked.query
        return _json(self._sessions.history(asked.name, query.first, query.most))

    def members(self, asked: Asked) -> Answered:
        return _json(self._sessions.members(asked.name))

    def explanation(self, asked: Asked) -> Answered:
        return _json(self._sessions.explanation(asked.name))

    def report(self, asked: Asked) -> Answered:
        from tidewolf.service.rendering import content_policy

        reply = self._sessions.report(asked.name)
        return page(reply.body["html"], content_policy()), reply.after

    def audit(self, asked: Asked) -> Answered:
        query: AuditQuery = asked.query
        if not asked.name and asked.caller.prefix:
            raise Refused(
                403, "The log of all sessions is for tokens of all sessions: ask for one's own."
            )
        return _json(self._sessions.audit(asked.name or None, query.after, query.most))

    def migrate(self, asked: Asked) -> Answered:
        return _json(self._sessions.migrate(asked.name, as_object(asked.body), asked.caller))

    def mode(self, asked: Asked) -> Answered:
        return _json(self._sessions.mode(asked.name, as_object(asked.body), asked.caller))

    def rollback(self, asked: Asked) -> Answered:
        return _json(self._sessions.rollback(asked.name, as_object(asked.body), asked.caller))

    def pin(self, asked: Asked) -> Answered:
        return _json(self._sessions.pin(asked.name, as_object(asked.body), asked.caller))

    def overview(self, asked: Asked) -> Answered:
        from tidewolf.service.page import page as overview
        from tidewolf.service.rendering import content_policy

        shown = overview(self._sessions, asked.caller, asked.query.after)
        return page(shown, content_policy()), None

    def metrics(self, asked: Asked) -> Answered:
        from tidewolf.service.metrics import exposition

        if asked.caller.prefix:
            raise Refused(403, "Metrics are of all sessions, and for tokens of all sessions.")
        return Answer(200, exposition(self._sessions, self._traffic), _METRICS), None
