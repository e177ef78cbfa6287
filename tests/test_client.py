"""A client of a service: what it decides is what a session in process decides, to the bit, whatever
is lost on the way; what is refused is refused alike.
"""

import socketserver
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidewolf as tw
from interpreter import python
from serving import SIMPLEX
from serving import fresh as unused
from tidewolf.client import AGAIN, as_json, error_of
from tidewolf.core import errors
from tidewolf.functions import Affine, Capacity, Linear

MATRIX = {**SIMPLEX, "set": {"kind": "Spectraplex", "n": 2}}
SETS = [(SIMPLEX, tw.sets.Simplex(3)), (MATRIX, tw.sets.Spectraplex(2))]


@pytest.fixture(scope="module")
def url(servers, tmp_path_factory):
    """A service that all tests of this file share."""
    server = servers.start(tmp_path_factory.mktemp("client") / "sessions")
    yield f"http://127.0.0.1:{server.port}"
    server.kill()


def fresh(url, experiment=SIMPLEX, **more):
    """A client of a session that nobody has used."""
    return tw.Client(url, unused(), experiment=experiment, **more)


def asked_once(url, **more):
    with tw.Client(url, "nobody", **more) as client:
        client.play()


def inside(K):
    return tw.Session(tw.LyapunovDescent(K))


# --- the law --------------------------------------------------------------------------------------

STEPS = st.sampled_from(
    ["play", "play", "ahead", "observe", "observe", "late", "again", "gradient", "other", "back"]
)


@settings(max_examples=15)
@given(st.sampled_from(SETS), st.lists(STEPS, min_size=3, max_size=14), st.integers(0, 2**32 - 1))
def test_a_client_decides_as_a_session_does(url, what, steps, seed):
    (experiment, K), rng = what, np.random.default_rng(seed)
    told = []
    with fresh(url, experiment) as client:
        session = inside(K)
        for step in steps:
            costs = rng.normal(size=K.shape)
            numbers = {"costs": 0.5 * (costs + costs.T), "capacities": rng.random(K.shape)}
            ask = _asked(step, session, numbers, told, rng)
            assert _done(client, *ask) == _done(session, *ask)
        for name in ("rounds", "round", "pending"):
            assert getattr(client, name) == getattr(session, name)
        assert _done(client, "play", {}) == _done(session, "play", {})


def _asked(step, session, numbers, told, rng):
    """What both are asked."""
    if step in ("play", "ahead"):
        return "play", {} if step == "play" else {"round": session.round + int(rng.integers(3))}
    if step == "back":
        return "rollback", {"round": max(session.rounds - 1, 0)}
    if step == "gradient":
        given = {"loss_gradient": numbers["costs"], "constraint_value": -0.5}
        return "observe", {"round": session.round, **given}
    if step == "again" and told:
        return "observe", told[-1]
    if step == "other" and told:
        return "observe", {**told[-1], "costs": 2.0 * numbers["costs"]}
    if step == "late" and session.pending:
        told.append({"round": int(rng.choice(session.pending)), **numbers})
        return "observe", told[-1]
    return "observe", {"round": session.round, **numbers} if step == "again" else numbers


def _done(session, method, given):
    try:
        found = getattr(session, method)(**given)
    except errors.TidewolfError as error:
        return type(error)
    return None if found is None else found.tobytes()


def test_what_is_known_before_a_round_goes_along(url):
    K, told = tw.sets.Simplex(3), {"name": "Ensemble", "experts": ["mine"]}
    session = tw.Session(tw.Ensemble(K, experts=["mine"]))
    with fresh(url, {"set": SIMPLEX["set"], "learners": [told]}) as client:
        for t in range(4):
            advice = {"mine": [0.0, 1.0, 0.0], "other": None}
            known = {"time": f"2026-03-01T1{t}:00", "advice": advice, "unavailable": [t % 3]}
            x = client.play(**known)
            assert (x.tobytes(), x[t % 3]) == (session.play(**known).tobytes(), 0.0)
            for each in (client, session):
                each.observe(
                    loss=Linear.one([1.0, 0.5 * t, 0.2]), constraint=Capacity.one(K.center)
                )
        with pytest.raises(errors.NotSupported, match="takes no forecast"):
            client.play(forecast=(Linear.one([1.0, 2.0, 3.0]), None))


def test_points_are_read_only_and_of_the_shape_of_the_set(url):
    with fresh(url, MATRIX) as client:
        x = client.play()
        assert x.shape == (2, 2)
        assert not x.flags.writeable
        assert len(client.names) == 4
        client.observe(played=[[1.0, 0.0], [0.0, 0.0]], costs=np.eye(2))
        assert (client.rounds, client.mode, client.explain()["round"]) == (1, "live", 2)


# --- lost answers ---------------------------------------------------------------------------------


@contextmanager
def between(fate):
    """What stands between clients and services: every request passes, is `lost` before it arrives,
    its answer is `unheard`, it is told to come back `later`, or that the session is held
    `elsewhere`.
    """
    right = httpx.Client.request

    def request(client, *asked, **given):
        way = fate()
        if way == "later":
            problem = {"title": "Overloaded", "detail": "Later."}
            return httpx.Response(503, json=problem, headers={"retry-after": "0"})
        if way == "elsewhere":
            problem = {"title": "HeldElsewhere", "detail": "b holds it.", "holder": "b"}
            return httpx.Response(409, json=problem)
        answer = None if way == "lost" else right(client, *asked, **given)
        if answer is None or way == "unheard":
            raise httpx.RemoteProtocolError("Server disconnected without sending a response.")
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(httpx.Client, "request", request)
        yield


@pytest.fixture
def at_once(monkeypatch):
    """Nobody waits; the pauses that would have been."""
    pauses = []
    monkeypatch.setattr("tidewolf.client.time.sleep", pauses.append)
    return pauses


def test_whatever_is_lost_on_the_way_counts_once(url, at_once):
    rng, session = np.random.default_rng(0), inside(tw.sets.Simplex(3))
    bad = ["lost", "unheard", "later", "elsewhere"]
    fates = iter(rng.choice(["passes", *bad], size=1000, p=[0.4, *[0.15] * 4]).tolist())
    with between(lambda: next(fates)), fresh(url, attempts=50) as client:
        for _ in range(12):
            assert client.play().tobytes() == session.play().tobytes()
            costs, capacities = rng.normal(size=3), rng.random(3)
            client.observe(costs=costs, capacities=capacities)
            session.observe(costs=costs, capacities=capacities)
        assert client.rounds == 12
    assert at_once


def test_attempts_are_bounded_and_pauses_grow(url, at_once):
    with between(lambda: "lost"), pytest.raises(errors.NoAnswer, match="does not answer"):
        asked_once(url, attempts=4)
    assert len(at_once) == 3
    for k, pause in enumerate(at_once):
        assert 0.05 * 2**k <= pause <= 0.15 * 2**k
    with between(lambda: "later"), pytest.raises(errors.Overloaded, match=r"^Later\.$"):
        asked_once(url, attempts=2)
    with between(lambda: "elsewhere"), pytest.raises(errors.HeldElsewhere) as caught:
        asked_once(url, attempts=2)
    assert caught.value.holder == "b"
    with pytest.raises(errors.NoAnswer, match="running there"):
        asked_once("http://127.0.0.1:9", attempts=1)


def test_what_is_no_service_is_said_to_be_none():
    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            self.request.recv(10_000)
            self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello")

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.handle_request).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        with (
            tw.Client(url, "a", attempts=1) as client,
            pytest.raises(errors.NoAnswer, match="200, and"),
        ):
            client.play()


# --- refusals -------------------------------------------------------------------------------------


def test_what_is_refused_is_refused_as_in_process(url):
    with fresh(url) as client:
        client.observe(costs=[1.0, 0.0, 0.5])
        for error, given in (
            (errors.OtherContent, {"round": 0, "costs": [1.0, 0.0, 0.6]}),
            (errors.NotAMember, {"costs": [1.0, 0.0, 0.5], "played": [2.0, 0.0, 0.0]}),
            (errors.InvalidInput, {"costs": [1.0, 0.0]}),
            (errors.InvalidInput, {"round": 7, "costs": [1.0, 0.0, 0.5]}),
            (errors.InvalidInput, {}),
            (errors.NotFinite, {"costs": [1.0, 0.0, float("nan")]}),
            (errors.WrongType, {"costs": "abc"}),
            (errors.InvalidInput, {"costs": {"nobody": 1.0}}),
            (errors.NotSupported, {"loss": Linear(np.ones((2, 3)))}),
            (errors.NotSupported, {"costs": [1.0] * 3, "constraint": Affine.one([1.0] * 3, 0.5)}),
            (errors.InvalidInput, {"costs": [1.0] * 3, "loss": Linear.one([1.0] * 3)}),
        ):
            with pytest.raises(error):
                client.observe(**given)
        assert client.rounds == 1
        client.observe(costs=dict.fromkeys(client.names, 1.0))
        assert client.rounds == 2
    with pytest.raises(errors.UnknownSession):
        asked_once(url)
    with tw.Client(url, client.name, experiment=SIMPLEX) as again:
        assert again.rounds == 2
    with pytest.raises(errors.AlreadyThere):
        tw.Client(url, client.name, experiment=MATRIX)


OURS = [kind for kind in vars(errors).values() if isinstance(kind, type)]


@pytest.mark.parametrize("kind", [kind for kind in OURS if issubclass(kind, errors.TidewolfError)])
def test_every_error_of_the_library_comes_back_as_itself(kind):
    found = error_of(422, {"title": kind.__name__, "detail": "It is so.", "holder": "h"}, 3.0)
    assert type(found) is kind
    assert (str(found), getattr(found, "holder", "h")) == ("It is so.", "h")
    assert getattr(found, "retry_after", 3.0) == (3.0 if not kind.__name__.startswith("_") else 1.0)


def test_titles_of_http_are_told_apart_by_status():
    kinds = [type(error_of(status, {"detail": ""})) for status in (422, 404, 409, 429, 503, 500)]
    names = ["InvalidInput", "UnknownSession", "OtherContent", "TooMany", "Overloaded"]
    assert [kind.__name__ for kind in kinds] == [*names, "TidewolfError"]
    assert {429, 503} <= AGAIN


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("url", ["127.0.0.1:8000", "ftp://127.0.0.1", "http://127.0.0.1:8000/?a=b"]),
        ("url", ["http://[::1", "http://a b"]),
        ("session", ["", "../etc", "a" * 101]),
        ("token", ["two words", ""]),
        ("timeout", [0.0]),
        ("attempts", [0]),
        ("experiment", [[1, 2]]),
    ],
)
def test_bad_arguments_are_refused_before_anybody_is_asked(name, values):
    for value in values:
        given = {"url": "http://127.0.0.1:9", "session": "a", "attempts": 1, name: value}
        with pytest.raises(errors.InvalidInput):
            tw.Client(**given)


def test_what_is_no_json_is_refused_in_a_sentence():
    loop = []
    loop.append(loop)
    for error, value in (
        (errors.NotFinite, float("inf")),
        (errors.WrongType, object()),
        (errors.InvalidInput, loop),
        (errors.WrongType, {(1, 2): 3}),
    ):
        with pytest.raises(error, match="sent to a service"):
            as_json({"x": value})
    with pytest.raises(errors.WrongShape, match="constraint_gradient"):
        tw.Client("http://127.0.0.1:9", "a").observe(
            loss_gradient=[1.0], constraint_value=[1.0, 2.0], constraint_gradient=[[1.0]]
        )


# --- life -----------------------------------------------------------------------------------------


def test_threads_share_a_client(url):
    with fresh(url) as client:
        with ThreadPoolExecutor(4) as pool:
            told = [pool.submit(client.observe, costs=[1.0, 0.0, 0.5]) for _ in range(20)]
        assert [one.exception() for one in told] == [None] * 20
        assert client.rounds == 20


def test_a_session_goes_back_and_over_to_another_set(url):
    with fresh(url) as client:
        first = client.play()
        for _ in range(3):
            client.observe(costs=[1.0, 0.0, 0.5])
        client.rollback(0, why="a test")
        assert (client.rounds, client.play().tobytes()) == (0, first.tobytes())
        client.observe(costs=[1.0, 0.0, 0.5])
        client.migrate({"learners": [{"name": "LyapunovDescent", "caution": 3.0}]})
        assert client.rounds == 1
        with pytest.raises(errors.InvalidInput):
            client.rollback(99)
        with pytest.raises(errors.WrongType):
            client.migrate([])
    client.close()


def test_the_client_is_light_until_it_asks():
    code = "import sys, tidewolf as tw; tw.Client('http://127.0.0.1:9', 'a')"
    python("-c", f"{code}; assert 'httpx' not in sys.modules")


def test_without_httpx_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(errors.MissingExtra, match=r"pip install \"tidewolf\[serve\]\""):
        tw.Client("http://127.0.0.1:9", "a").play()
