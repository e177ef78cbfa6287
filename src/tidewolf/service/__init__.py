"""Many named sessions behind one address: `tidewolf serve`.

    PUT a session;   POST decisions -> a point;   POST observations -> what it came to;   ...

All that answers a request is decided here, one session at a time, and acknowledged only once it is
on disk. Rounds count from 1, as they do in requests.

what a session answers
    description.py      what a session is made of, and what a round turned out to be
    modes.py            live, shadow, frozen, pinned: which point is played, and why
    notes.py            what was answered in a round, as it is stored
    hosted_session.py   one session: decides, learns, remembers what it answered
    operating.py        modes, pins, rollback, another learner: what operators do to it
    sessions.py         all of them by name: opened at first use, closed when they fail
    overviews.py        the state of all of them, without opening any
    warming.py          compiles what sessions need before their first round

what HTTP adds
    server.py, app.py, connections.py       the process, its routes, its connections
    middleware.py, tokens.py, traffic.py    who gets in, and how much at a time
    endpoints.py, messages.py               one request: what is read, asked and sent
    models.py, operations.py                bodies, answers and addresses: the OpenAPI schema

what people look at
    pages.py            HTML; metrics.py is for Prometheus
"""
