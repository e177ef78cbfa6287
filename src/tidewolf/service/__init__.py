"""Many named sessions behind one address: `tidewolf serve`.

    PUT a session;   POST decisions -> a point;   POST observations -> cost and violation;   ...

A request is acknowledged once it is on disk. Rounds count from 1, as in requests.

one request
    app.py              the checks that every request passes, every resource with its models; how
                        the process starts and how it ends
    requests.py         callers and tokens, load and quotas, strict JSON, problems (RFC 9457);
                        uvicorn's connections, with limits on time, size and number
    models.py           bodies and answers, which are the OpenAPI schema; what a session is made of,
                        and how it is operated; compiles what sessions need before their first round
    sessions.py         all sessions by name: opened at first use, closed when they fail; what
                        operators do to one: mode, pin, rollback, migrate
    hosted_session.py   one session: which point is played, what it observes, the note of a round

to look at
    pages.py            HTML, and metrics for Prometheus
"""
