"""Many named sessions behind one door: `tidewolf serve`.

    PUT a session;   POST decisions -> a point;   POST observations -> what it came to;   ...

All that answers a request is decided here, one session at a time, and acknowledged only once it is
on disk. Rounds count from 1, as they do in requests.

what a session answers
    description.py  what a session is made of, and what is made of that
    modes.py        live, shadow, frozen, pinned: which point is played, and why
    ladder.py       the learner, the last good decision, a static one
    feedback.py     what a round turned out to be: numbers, gradients or values
    notes.py        what was answered in a round, as the shelf keeps it
    served.py       one session: decides, learns, remembers what it answered
    operating.py    modes, pins, going back, another learner: what operators do to it
    sessions.py     all of them by name: opened at first use, let go of when they fail
    overviews.py    how all of them stand (overview.py), without opening any
    models.py       what is asked and answered, as pydantic models
    replies.py      who asks, what is answered, and how much is allowed

what HTTP adds
    server.py, app.py, gate.py, endpoints.py, handlers.py, connections.py, overload.py
                    the process, its addresses, who gets in, and how much at a time
    strict_json.py, request_bodies.py, answers.py, problems.py, operations.py
                    what is read, what is sent, and the addresses, described as OpenAPI
    tokens.py, quotas.py
                    who may do what, and how often

what people look at
    page.py, session_page.py, rendering.py, sparkline.py, words.py
                    pages; metrics.py is for Prometheus
"""
