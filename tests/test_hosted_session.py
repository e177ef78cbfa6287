"""One served session: answers that a kill does not change, modes, the ladder, what is refused."""

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tidewolf as tw
from test_deadline import GATE, Policy
from tidewolf.core import errors
from tidewolf.service import models as m
from tidewolf.service.hosted_session import HostedSession
from tidewolf.service.models import Built, Description, Settings
from tidewolf.service.requests import Caller, Limits
from tidewolf.service.sessions import Reply, Sessions
from tidewolf.storage.session_store import SessionStore

ME = Caller("me")
THREE = {"set": {"kind": "Simplex", "n": 3}, "learners": [{"name": "LyapunovDescent"}]}
COSTS, CAPACITIES = [1.0, 0.0, 0.5], [1.0, 0.5, 1.0]


BODIES = {
    "put": Description, "decide": m.DecisionRequest, "observe": m.ObservationRequest,
    "pin": m.Pin, "mode": m.ModeChange, "rollback": m.Rollback, "migrate": m.Migration,
}  # fmt: skip


LOOKS = {
    "decision": lambda hosted, number: hosted.decision(number - 1),
    "experts": HostedSession.experts,
    "explanation": HostedSession.explanation,
    "facts": HostedSession.facts,
}


class Door:
    """Sessions in a folder, whose answers are waited for; opened again as after a kill."""

    def __init__(self, folder, **limits):
        self.folder, self.limits, self.now = folder, Limits(**limits), 1000.0
        self.open()

    def open(self):
        store = SessionStore.open(self.folder, commit_within=0.0)
        self.sessions = Sessions(store, limits=self.limits, clock=lambda: self.now)

    def reopen(self):
        self.sessions.store.close()
        self.open()

    def __getattr__(self, what):
        def ask(*given, **more):
            if what in BODIES:
                name, *body = given
                read = BODIES[what].read(*body or [{}])
                given = (name, read) if what in ("decide", "observe") else (name, read, ME)
            if what in LOOKS:
                name, *rest = given
                reply = self.sessions.look(name, lambda hosted: LOOKS[what](hosted, *rest))
            else:
                method = what if hasattr(self.sessions, what) else "operate"
                reply = getattr(self.sessions, method)(*given, **more)
            if not isinstance(reply, Reply):
                return reply
            if reply.after is not None:
                reply.after.result(30)
            return reply.body

        return ask

    def hosted(self, name):
        with self.sessions._held(name) as served:
            return served


@pytest.fixture
def opened(tmp_path):
    """Opens a folder of sessions with the session "a", under these limits."""
    doors = []

    def open_door(description=THREE, **limits):
        doors.append(Door(tmp_path / "data", **limits))
        doors[-1].put("a", description)
        return doors[-1]

    yield open_door
    for door in doors:
        door.sessions.store.close()


@pytest.fixture
def door(opened):
    return opened()


def test_costs_of_entries_that_were_not_seen_may_be_missing(opened):
    """The cost seen last stands, also after a kill; unknown names and other numbers are refused."""
    three = {"kind": "SimplexProduct", "sizes": [3], "least": 0.01}
    door = opened({"set": three, "names": ["a", "b", "c"]})
    seen = door.observe("a", {"round": 1, "costs": {"a": 3.0, "c": 6.0}})
    assert seen["cost"] == pytest.approx(4.5)  # b has the mean of both
    again = door.observe("a", {"round": 1, "costs": {"a": 3.0, "c": 6.0}})
    assert (again["rounds"], again["cost"]) == (1, seen["cost"])
    door.reopen()
    door.observe("a", {"round": 2, "costs": {"b": 1.0}, "capacities": [1.0, 1.0, 1.0]})
    session = door.hosted("a").session
    assert session.imputed_costs == 3
    assert session.last_functions[0].C.tolist() == [[3.0, 1.0, 6.0]]
    for body in (
        {"costs": {"d": 1.0}},
        {"costs": {}},
        {"costs": {"a": 1.0}, "capacities": {"a": 1.0}},
    ):
        with pytest.raises(errors.InvalidInput, match="The observation"):
            door.observe("a", {"round": 3, **body})
    assert door.hosted("a").session.rounds == 2


def test_the_first_rounds_of_a_session(door):
    first, told = door.decide("a"), {"round": 1, "source": "learner", "mode": "live"}
    none = dict.fromkeys(("previous", "moved", "paths"))
    assert {key: first[key] for key in (*told, *none)} == told | none
    assert first["decision"] == dict.fromkeys(("entry 0", "entry 1", "entry 2"), 1 / 3)
    assert "proposal" not in first
    seen = door.observe("a", {"round": 1, "costs": COSTS, "capacities": CAPACITIES})
    assert (seen["round"], seen["rounds"], seen["violation"]) == (1, 1, 0.0)
    assert seen["cost"] == pytest.approx(0.5)
    session = tw.Session(tw.LyapunovDescent(tw.sets.Simplex(3)))
    session.observe(costs=COSTS, capacities=CAPACITIES)
    second = door.decide("a", {})
    assert list(second["decision"].values()) == session.play().tolist()
    assert second["previous"] == first["decision"]
    assert second["moved"] == pytest.approx(np.abs(session.play() - 1 / 3).sum() / 2)
    assert door.decision("a", 1)["decision"] == first["decision"]
    assert door.decision("a", 2) == second
    with pytest.raises(errors.UnknownSession, match="not asked for yet"):
        door.decision("a", 3)
    (row,) = door.history("a")["rounds"]
    assert {key: row[key] for key in told} == told


def test_what_is_put_twice_is_there_once(door):
    assert door.sessions.put("a", Description.read({**THREE, "why": "again"}), ME).status == 200
    with pytest.raises(errors.AlreadyThere, match="another description"):
        door.put("a", {"set": {"kind": "Simplex", "n": 4}})
    with pytest.raises(errors.UnknownSession):
        door.decide("b")
    assert [one["name"] for one in door.list()["sessions"]] == ["a"]
    door.delete("a", "", ME)
    with pytest.raises(errors.UnknownSession):
        door.get("a")
    assert [one["what"] for one in door.audit("a")["entries"]] == ["put", "delete"]
    assert door.put("a", {"set": {"kind": "Simplex", "n": 4}})["shape"] == [4]


def test_the_same_observation_twice_counts_once_and_another_is_refused(door):
    body = {"round": 1, "costs": COSTS, "capacities": [0.1, 0.1, 0.1]}
    first = door.observe("a", body)
    assert door.observe("a", body) == first
    costs = dict(zip(door.get("a")["names"], COSTS, strict=True))
    assert door.observe("a", {**body, "costs": costs}) == first
    with pytest.raises(errors.OtherContent, match="Round 1 is over"):
        door.observe("a", {**body, "costs": [1.0, 0.0, 0.6]})
    with pytest.raises(errors.InvalidInput, match="Round 3 was not asked for yet"):
        door.observe("a", {**body, "round": 3})
    assert door.get("a")["rounds"] == 1
    assert door.sessions.counters["observations", ""] == 1


def test_a_budget_is_one_of_budgets(door):
    body = {"round": 1, "costs": COSTS, "weights": [1.0, 1.0, 1.0]}
    first = door.observe("a", {**body, "budget": 0.5})
    assert first["violation"] == pytest.approx(0.5)
    assert door.observe("a", {**body, "budgets": [0.5]}) == first


def test_gradients_and_values_are_observations_too(door):
    gradients = {"round": 1, "loss_gradient": COSTS, "constraint_value": 0.25}
    with pytest.raises(errors.InvalidInput, match="constraint_gradient"):
        door.observe("a", gradients)
    seen = door.observe("a", {**gradients, "constraint_gradient": {"entry 1": 1.0}})
    assert seen["cost"] is None
    assert seen["violation"] == 0.25
    assert door.sessions.overview()[0].violations == (0.25,)
    assert door.get("a")["rounds"] == 1


def test_the_learner_is_told_what_was_played_in_place_of_its_decision(door):
    door.pin("a", {"decision": {"entry 0": 1.0}, "why": "night"})
    answer = door.decide("a")
    assert (answer["source"], answer["decision"]["entry 0"]) == ("pinned", 1.0)
    assert answer["proposal"]["entry 0"] == pytest.approx(1 / 3)
    assert door.observe("a", {"round": 1, "costs": COSTS})["cost"] == 1.0
    assert door.observe("a", {"round": 1, "costs": COSTS})["rounds"] == 1
    with pytest.raises(errors.OtherContent):
        door.observe("a", {"round": 1, "costs": COSTS, "played": [0.0, 1.0, 0.0]})
    said = door.get("a")
    assert said["pinned"]
    assert said["saved"] == {"loss": 0.5, "violation": 0.0, "rounds": 1}
    door.pin("a", {"decision": None})
    assert door.decide("a")["source"] == "learner"
    assert [one["what"] for one in door.audit("a")["entries"]] == ["put", "pin", "unpin"]
    assert door.audit("a")["entries"][1]["why"] == "night"


def test_shadow_plays_the_incumbent_and_says_what_the_learner_would_have_saved(door):
    door.mode("a", {"mode": "shadow"})
    nobody = door.decide("a")
    assert nobody["decision"] is None
    assert nobody["source"] == "incumbent"
    assert nobody["proposal"]
    with pytest.raises(errors.InvalidInput, match="say what was played"):
        door.observe("a", {"round": 1, "costs": COSTS})
    door.observe("a", {"round": 1, "costs": COSTS, "played": [1.0, 0.0, 0.0]})
    with pytest.raises(errors.NotAMember, match="incumbent"):
        door.decide("a", {"advice": {"incumbent": [0.0, 3.0, 0.0]}})
    told = door.decide("a", {"advice": {"incumbent": [0.0, 0.0, 1.0]}})
    assert (told["decision"]["entry 2"], told["previous"]["entry 0"]) == (1.0, 1.0)
    assert door.observe("a", {"round": 2, "costs": COSTS})["cost"] == 0.5
    door.mode("a", {"mode": "shadow", "incumbent": [0.0, 1.0, 0.0]})
    assert door.decide("a")["decision"]["entry 1"] == 1.0
    assert door.get("a")["saved"]["rounds"] == 2


def test_frozen_repeats_the_decision_that_stood(door):
    door.observe("a", {"round": 1, "costs": COSTS})
    stood = door.decide("a")["decision"]
    door.mode("a", {"mode": "frozen"})
    for number in (2, 3):
        answer = door.decide("a")
        assert (answer["decision"], answer["source"]) == (stood, "last")
        door.observe("a", {"round": number, "costs": COSTS})
    door.mode("a", {"mode": "live"})
    assert door.decide("a")["decision"] != stood
    assert [one["mode"] for one in door.history("a")["rounds"]] == ["live", "frozen", "frozen"]


def test_what_is_unavailable_is_played_by_nobody(door):
    door.pin("a", {"decision": [0.0, 0.0, 1.0]})
    answer = door.decide("a", {"unavailable": ["entry 2"]})
    assert (answer["source"], answer["decision"]["entry 2"]) == ("learner", 0.0)
    assert "The pinned point uses entry 2: unavailable." in answer["reason"]
    assert door.decide("a") == answer
    with pytest.raises(errors.OtherContent, match="Round 1 was decided"):
        door.decide("a", {"unavailable": ["entry 1"]})
    door.observe("a", {"round": 1, "costs": COSTS})
    assert door.get("a")["saved"]["rounds"] == 0  # what was answered was its own


def test_a_learner_that_fails_leaves_the_last_decision_and_then_a_static_one(door, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("it gave up")

    session = door.hosted("a").session
    with monkeypatch.context() as broken:
        broken.setattr(session, "play", fail)
        first = door.decide("a")
    assert first["source"] == "static"
    assert "The learner failed: it gave up." in first["reason"]
    assert door.decide("a") == first  # the answer stands
    door.observe("a", {"round": 1, "costs": COSTS, "played": [0.0, 1.0, 0.0]})
    with monkeypatch.context() as broken:
        broken.setattr(session, "play", fail)
        last = door.decide("a")
    assert (last["source"], last["decision"]) == ("last", first["decision"])
    counters = door.sessions.counters
    assert (counters["fallbacks", "static"], counters["fallbacks", "last"]) == (2, 1)
    door.reopen()
    assert door.decide("a") == last
    door.put("b", {**THREE, "fallback": {"entry 1": 1.0}})
    monkeypatch.setattr(door.hosted("b").session, "play", fail)
    own = door.decide("b")
    assert (own["source"], own["decision"]["entry 1"]) == ("static", 1.0)


def test_a_session_whose_rows_are_broken_still_gets_decisions(door):
    door.observe("a", {"round": 1, "costs": COSTS, "capacities": CAPACITIES})
    door.observe("a", {"round": 2, "costs": COSTS, "capacities": CAPACITIES})
    last = door.decision("a", 2)["decision"]
    door.sessions.store.close()
    with sqlite3.connect(door.folder / "tidewolf.db") as db:
        db.execute("UPDATE events SET data = zeroblob(9)")
    db.close()
    door.open()
    answer = door.decide("a")
    assert (answer["source"], answer["decision"], answer["round"]) == ("last", last, 3)
    assert "The session cannot be opened" in answer["reason"]
    with pytest.raises(errors.CheckpointError):
        door.observe("a", {"round": 3, "costs": COSTS})
    assert door.sessions.overview()[0].rounds == 2
    door.delete("a", "", ME)


def test_going_back_forgets_what_was_answered_since(door):
    for number in range(1, 5):
        door.observe("a", {"round": number, "costs": COSTS})
    third = door.decision("a", 3)
    door.pin("a", {"decision": [1.0, 0.0, 0.0]})
    door.decide("a", {"round": 6})
    door.pin("a", {"decision": None})
    assert door.rollback("a", {"round": 3, "why": "wrong costs"})["rounds"] == 2
    again = door.decide("a")
    assert (again["decision"], again["round"]) == (third["decision"], 3)
    assert [one["round"] for one in door.history("a")["rounds"]] == [1, 2]
    door.reopen()
    assert door.decide("a") == again
    assert door.audit("a")["entries"][-1]["what"] == "rollback from round 7 to round 3"


LINKS = [["s", "a"], ["a", "t"], ["s", "b"], ["b", "t"]]


def network(links):
    return {"graph": links, "source": "s", "target": "t"}


def test_a_network_that_changes_goes_on_by_name(door):
    door.put("net", {"set": network(LINKS), "learners": [{"name": "LyapunovDescent"}]})
    first = door.decide("net")
    assert [path["path"] for path in first["paths"]] == ["s > a > t", "s > b > t"]
    door.observe("net", {"round": 1, "costs": dict.fromkeys(first["decision"], 1.0)})
    upper, lower = {"s > a": 1.0, "a > t": 1.0}, {"s > b": 1.0, "b > t": 1.0}
    door.mode("net", {"mode": "shadow", "incumbent": lower})
    door.pin("net", {"decision": upper})
    pinned = door.decide("net", {"round": 3})
    assert pinned["source"] == "pinned"
    changed = door.migrate("net", {"set": network([*LINKS, ["s", "t"]]), "why": "a link"})
    assert changed["settings"]["pin"] == {name: upper.get(name, 0.0) for name in changed["names"]}
    assert (changed["rounds"], changed["pending"]) == (1, [2, 3])
    again = door.decide("net", {"round": 3})
    assert again["decision"] == {**pinned["decision"], "s > t": 0.0}
    assert door.decision("net", 1)["decision"] == first["decision"]  # by the names of then
    costs = dict.fromkeys(changed["names"], 1.0)
    assert door.observe("net", {"round": 3, "costs": costs})["cost"] == 2.0
    door.reopen()
    assert door.decision("net", 1)["decision"] == first["decision"]
    assert door.decision("net", 3)["decision"] == again["decision"]
    gone = door.migrate("net", {"set": network([["s", "b"], ["b", "t"], ["s", "t"]])})
    assert not gone["pinned"]
    assert gone["settings"]["incumbent"] == {"s > b": 1.0, "b > t": 1.0, "s > t": 0.0}
    assert "its pin used removed entries" in door.audit("net")["entries"][-1]["what"]
    with pytest.raises(errors.InvalidInput):
        door.migrate("net", {"learners": [{"name": "Ensemble"}]})


def test_a_learner_that_follows_the_clock_is_told_the_time(door):
    learners = [{"name": "Ensemble", "season": "1d"}]
    door.put("day", {"set": {"kind": "Simplex", "n": 2}, "learners": learners})
    day = [{"time": f"2026-03-01T{hour:02}:00", "costs": [hour % 2, 1.0]} for hour in range(8)]
    door.observe("day", {"observations": day})
    answer = door.decide("day", {"round": 9, "time": "2026-03-01T08:00"})
    assert answer["source"] == "learner"
    assert door.decide("day", {"round": 9, "time": "2026-03-01T08:00"}) == answer
    with pytest.raises(errors.OtherContent, match="Round 9 was decided"):
        door.decide("day", {"round": 9, "time": "2026-03-01T20:00"})


@pytest.mark.parametrize("how", ["hangs", "fails"])
def test_advisers_that_hang_or_fail_sleep_and_the_decision_comes(door, how):
    GATE.clear()
    made = Description.read(THREE).build()
    learner = tw.Ensemble(made.K, experts=[Policy("planner", **{how: True})])
    store = door.sessions.store
    store.create("planned", "", Settings("Ensemble").text).result()
    served = HostedSession(door.sessions, store.info("planned"), Built(made.reader, learner))
    try:
        with store.transaction("planned"):
            answer = served.decide(m.DecisionRequest.read({"deadline": 0.05}))
        assert answer["source"] == "learner"
        assert served.description()["notes"]
    finally:
        GATE.set()


def test_sessions_that_were_not_used_for_longest_are_let_go_of(opened):
    door = opened(open=2)
    for name in "abcd":
        door.put(name, THREE)
        door.observe(name, {"round": 1, "costs": COSTS})
    assert sorted(door.sessions._opened) == ["c", "d"]
    assert [door.get(name)["rounds"] for name in "abcd"] == [1] * 4
    door.sessions.close()
    assert door.sessions.overview()[0].costs == (0.5,)


def test_pending_limits_and_numbers_of_observations(opened):
    door = opened(pending=3, observations=2, sessions=1)
    door.decide("a", {"round": 3})
    with pytest.raises(errors.TooMany, match="leave 4 rounds waiting"):
        door.decide("a", {"round": 4})
    with pytest.raises(errors.InvalidInput, match="observations at a time"):
        door.observe("a", {"observations": [{}] * 3})
    with pytest.raises(errors.TooMany, match="1 sessions are there"):
        door.put("b", THREE)


def test_stale_and_breached(opened):
    door = opened({**THREE, "stale_after": 60})
    door.decide("a", {"round": 2})
    door.now += 61.0
    assert door.get("a")["stale"]
    assert door.sessions.overview()[0].stale
    door.reopen()
    (one,) = door.sessions.overview()
    assert one.stale
    assert one.pending == 1
    assert not door.sessions._opened
    body = {"costs": COSTS, "capacities": [0.1, 0.5, 0.5]}
    for number in (1, 2):
        door.observe("a", {"round": number, **body})
    door.sessions._overview = (-1e9, [])
    (one,) = door.sessions.overview()
    assert one.breached
    assert not one.stale
    assert one.limits["limit 1"] == pytest.approx(2 * (1 / 3 - 0.1))
    assert door.sessions.counters["breaches", ""] == 2


def test_rounds_that_expired_are_waited_for_no_more(opened):
    door = opened({**THREE, "stale_after": 60, "expire_after": 2})
    door.pin("a", {"decision": [1.0, 0.0, 0.0]})
    door.decide("a", {"round": 1})
    door.now += 61.0
    assert door.decide("a", {"round": 4})["round"] == 4
    said = door.get("a")
    assert (said["pending"], said["stale"]) == ([3, 4], False)
    assert said["notes"][0].endswith("expired without feedback: 1, 2.")
    with pytest.raises(errors.OtherContent, match="Round 1 is over"):
        door.decide("a", {"round": 1})
    with pytest.raises(errors.OtherContent, match="Round 1 is over"):
        door.observe("a", {"round": 1, "costs": COSTS})
    with pytest.raises(errors.UnknownSession):
        door.decision("a", 1)
    door.reopen()
    assert not door.sessions.overview()[0].stale
    assert not door.get("a")["stale"]


# --- several requests at once, and what must be refused ------------------------------------------


def test_who_deletes_a_session_leaves_nothing_half_gone(door, monkeypatch):
    gate, writing = threading.Event(), threading.Event()
    commits = door.sessions.store.commits
    write = commits._write

    def slow(group):
        writing.set()
        assert gate.wait(30)
        return write(group)

    monkeypatch.setattr(commits, "_write", slow)
    with ThreadPoolExecutor(5) as pool:
        deleting = pool.submit(door.delete, "a", "", ME)
        assert writing.wait(30)  # it is being deleted, and not yet gone
        others = [
            pool.submit(door.decide, "a"),
            pool.submit(door.observe, "a", {"costs": COSTS}),
            pool.submit(door.get, "a"),
            pool.submit(door.delete, "a", "", ME),
        ]
        door.sessions.store.rounds_of("a", 1, 9)  # who only looks remembers nothing
        gate.set()
    assert deleting.result() == {"name": "a", "deleted": True}
    assert [type(other.exception()) for other in others] == [errors.UnknownSession] * 4
    with pytest.raises(errors.UnknownSession):
        door.history("a")
    assert door.put("a", {**THREE, "rounds": 9})["rounds"] == 0
    assert door.observe("a", {"costs": COSTS})["round"] == 1


def test_a_fallback_that_fits_no_more_is_changed_with_the_set(door):
    learners = [{"name": "LyapunovDescent"}]
    body = {"set": network(LINKS), "learners": learners, "fallback": {"s > a": 1.0, "a > t": 1.0}}
    door.put("net", body)
    less = network([["s", "b"], ["b", "t"], ["s", "t"]])
    with pytest.raises(errors.InvalidInput, match="The fallback has no entry called"):
        door.migrate("net", {"set": less, "why": "a is gone"})
    new = {"s > b": 0.0, "b > t": 0.0, "s > t": 1.0}
    said = door.migrate("net", {"set": less, "fallback": new, "why": "a is gone"})
    assert said["settings"]["fallback"] == new
    assert door.migrate("net", {"fallback": None})["settings"]["fallback"] is None
    door.reopen()
    assert door.get("net")["settings"]["fallback"] is None


@pytest.mark.parametrize("kill", [False, True])
def test_who_was_not_told_of_a_pin_did_not_play_it(door, kill):
    told = door.decide("a")
    door.pin("a", {"decision": [1.0, 0.0, 0.0], "why": "between a decision and its feedback"})
    if kill:
        door.reopen()
    cost = np.dot(list(told["decision"].values()), COSTS)
    assert door.observe("a", {"round": 1, "costs": COSTS})["cost"] == pytest.approx(cost)
    assert door.get("a")["saved"]["rounds"] == 0
    assert door.observe("a", {"round": 1, "costs": COSTS})["cost"] == pytest.approx(cost)
    assert door.observe("a", {"round": 2, "costs": COSTS})["cost"] == 1.0  # from now on
    door.decide("a")
    door.pin("a", {"decision": [0.0, 1.0, 0.0]})
    if kill:
        door.reopen()
    assert door.observe("a", {"round": 3, "costs": COSTS})["cost"] == 1.0  # the pin before
    door.pin("a", {"decision": [1.0, 0.0, 0.0]})
    door.decide("a")
    assert door.observe("a", {"round": 4, "costs": COSTS})["cost"] == 1.0  # asked again
    door.rollback("a", {"round": 2})
    for number in (2, 3, 4):
        assert door.observe("a", {"round": number, "costs": COSTS})["cost"] == 1.0


def test_what_takes_long_is_not_done_where_everybody_waits(door):
    for _ in range(3):
        door.decide("a")

    def at_once(body):
        lock = door.sessions.lock_at_once("a", body)
        if lock is not None:
            lock.release()
        return lock is not None

    door.hosted("a").seconds = 0.0
    assert at_once(m.DecisionRequest.read({}))
    assert at_once(m.DecisionRequest.read({"round": 1}))
    assert not at_once(m.DecisionRequest.read({"round": 10000}))
    assert not at_once(m.Observations.read({"observations": [{"round": 1}]}))
    door.sessions.store.let_go("a")
    assert not at_once(m.DecisionRequest.read({}))


# --- a kill between any two requests --------------------------------------------------------------

POINTS = st.sampled_from([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.25, 0.25, 0.5]])
ROWS = st.fixed_dictionaries(
    {"costs": st.sampled_from([COSTS, [0.0, 1.0, 0.0]])},
    optional={"capacities": st.just([0.2, 0.5, 0.5]), "played": POINTS},
)
REQUESTS = st.lists(
    st.one_of(
        st.tuples(st.just("decide"), st.fixed_dictionaries({"ahead": st.integers(0, 2)})),
        st.tuples(
            st.just("decide"),
            st.fixed_dictionaries(
                {"ahead": st.just(1)},
                optional={
                    "unavailable": st.just(["entry 0"]),
                    "advice": st.fixed_dictionaries({"incumbent": POINTS}),
                },
            ),
        ),
        st.tuples(st.just("observe"), st.tuples(st.integers(0, 3), ROWS)),
        st.tuples(st.just("pin"), st.fixed_dictionaries({"decision": st.none() | POINTS})),
        st.tuples(
            st.just("mode"),
            st.fixed_dictionaries({"mode": st.sampled_from(["live", "shadow", "frozen"])}),
        ),
        st.tuples(st.just("rollback"), st.integers(0, 2)),
        st.tuples(st.just("decision"), st.integers(0, 3)),
    ),
    min_size=3,
    max_size=14,
)


def asked(door, what, body):
    """The answer to a request whose rounds are told from the one that stands."""
    ranking = door.get("a")["round"]
    try:
        match what:
            case "decide":
                body = dict(body)
                number = ranking + body.pop("ahead")
                found = door.decide("a", {**body, "round": number} if number > ranking else {})
            case "observe":
                back, row = body
                found = door.observe("a", {**row, "round": max(1, ranking - back)})
            case "rollback":
                found = door.rollback("a", {"round": max(1, ranking - body)})
            case "decision":
                found = door.decision("a", max(1, ranking - body))
            case _:
                found = getattr(door, what)("a", body)
    except errors.TidewolfError as error:
        found = {"error": f"{type(error).__name__}: {error}"}
    return {key: value for key, value in found.items() if key != "created"}


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(requests=REQUESTS, kills=st.sets(st.integers(0, 13), min_size=1))
def test_a_kill_between_any_two_requests_changes_no_answer(tmp_path_factory, requests, kills):
    doors = [Door(tmp_path_factory.mktemp("shelf")) for _ in range(2)]
    whole, killed = doors
    for door in doors:
        door.put("a", THREE)
    for i, (what, body) in enumerate(requests):
        if i in kills:
            killed.reopen()
        assert asked(killed, what, body) == asked(whole, what, body), (what, body)
    assert whole.history("a") == killed.history("a")
    for door in doors:
        door.sessions.store.close()
