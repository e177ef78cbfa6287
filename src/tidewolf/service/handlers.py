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
from tidewolf.service.endpoints import Answered, Request
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

    def at_once(self, request: Request) -> AbstractContextManager[object] | None:
        """The session of a request, held, where it takes less time than a thread would."""
        body = request.body
        if len(body) > _SHORT or any(word in body for word in _LONG):
            return None
        found = _ROUND.search(body)
        return self._sessions.held_at_once(request.name, int(found[1]) if found else 1)

    def decide(self, request: Request) -> Answered:
        body = as_object(request.body, may_be_empty=True)
        return _json(self._sessions.decide(request.name, body, request.caller))

    def observe(self, request: Request) -> Answered:
        body = as_object(request.body)
        many = body.get("observations")
        self._quotas.take_observations(
            request.caller.who, len(many) if isinstance(many, list) else 1
        )
        return _json(self._sessions.observe(request.name, body, request.caller))

    def decision(self, request: Request) -> Answered:
        return _json(self._sessions.decision(request.name, request.round))

    def get(self, request: Request) -> Answered:
        return _json(self._sessions.get(request.name))

    def put(self, request: Request) -> Answered:
        body = as_object(request.body)
        if self._quotas.sessions is None:
            return _json(self._sessions.put(request.name, body, request.caller))
        with self._making:
            self._require_room(request, self._quotas.sessions)
            return _json(self._sessions.put(request.name, body, request.caller))

    def _require_room(self, request: Request, most: int) -> None:
        """Refuse one session more than a token may have; one that is there already is none."""
        prefix = request.caller.prefix
        there = self._sessions.list(prefix, "", most).body["sessions"]
        if len(there) < most or any(each["name"] == request.name for each in there):
            return
        try:
            self._sessions.get(request.name)
        except UnknownSession:
            raise TooMany(
                f"This token may have {most:,} sessions, and has as many: delete one first.",
                retry_after=60.0,
            ) from None

    def delete(self, request: Request) -> Answered:
        return _json(self._sessions.delete(request.name, request.query.why, request.caller))

    def list(self, request: Request) -> Answered:
        query: ListQuery = request.query
        prefix, own = query.prefix, request.caller.prefix
        if own.startswith(prefix):
            prefix = own
        elif not prefix.startswith(own):
            return _json(Reply(200, {"sessions": []}, None))
        return _json(self._sessions.list(prefix, query.after, query.most))

    def history(self, request: Request) -> Answered:
        query: HistoryQuery = request.query
        return _json(self._sessions.history(request.name, query.first, query.most))

    def experts(self, request: Request) -> Answered:
        return _json(self._sessions.experts(request.name))

    def explanation(self, request: Request) -> Answered:
        return _json(self._sessions.explanation(request.name))

    def report(self, request: Request) -> Answered:
        from tidewolf.service.rendering import content_policy

        reply = self._sessions.report(request.name)
        return page(reply.body["html"], content_policy()), reply.after

    def audit(self, request: Request) -> Answered:
        query: AuditQuery = request.query
        if not request.name and request.caller.prefix:
            raise Refused(
                403, "The log of all sessions is for tokens of all sessions: ask for one's own."
            )
        return _json(self._sessions.audit(request.name or None, query.after, query.most))

    def migrate(self, request: Request) -> Answered:
        return _json(self._sessions.migrate(request.name, as_object(request.body), request.caller))

    def mode(self, request: Request) -> Answered:
        return _json(self._sessions.mode(request.name, as_object(request.body), request.caller))

    def rollback(self, request: Request) -> Answered:
        return _json(self._sessions.rollback(request.name, as_object(request.body), request.caller))

    def pin(self, request: Request) -> Answered:
        return _json(self._sessions.pin(request.name, as_object(request.body), request.caller))

    def overview(self, request: Request) -> Answered:
        from tidewolf.service.page import page as overview
        from tidewolf.service.rendering import content_policy

        shown = overview(self._sessions, request.caller, request.query.after)
        return page(shown, content_policy()), None

    def metrics(self, request: Request) -> Answered:
        from tidewolf.service.metrics import exposition

        if request.caller.prefix:
            raise Refused(403, "Metrics are of all sessions, and for tokens of all sessions.")
        return Answer(200, exposition(self._sessions, self._traffic), _METRICS), None
