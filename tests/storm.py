"""A storm: callers at work while their server is killed, or asked to end, again and again.

    storm = Storm(server, seed);   storm.rage(kills);   storm.judge()

Every session has one owner, who decides rounds ahead, observes them in some order, one or many at a
time, with other points played, asks again what was decided and posts again what was observed; what
is not acknowledged is asked again until it is. Others post again, and ask again, what owners were
told. Whatever was acknowledged must stay:

    observation    there exactly once; posted again it gets the first answer; with other content 409
    decision       the same bits whenever it is asked for
    all of it      the bits of a session in this process that was told the same in the same order

An owner is decided by its seed; when the kills come is not, so a storm that fails once may pass
then: the seed is in the message.
"""

import itertools
import random
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tidewolf as tw
from servers import LOST, Caller
from tidewolf.service.models import Description


def put(n, learner, **more):
    """The description of a session on a simplex."""
    return {"set": {"kind": "Simplex", "n": n}, "learners": [learner], **more}


KINDS = {
    "descent": put(4, "LyapunovDescent"),
    "expiring": put(3, "LyapunovDescent", expire_after=5),
    "ensemble": put(3, "Ensemble"),
}


@dataclass
class Owner:
    """One session, what was done to it in which order, and what was acknowledged."""

    name: str
    kind: str
    rng: random.Random
    decided: dict[int, Any] = field(default_factory=dict)
    observed: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    """round -> what was posted, and the answer; None where it was one of many"""

    def __post_init__(self):
        self.put = KINDS[self.kind]
        learner = Description.read(self.put).build().learner
        self.reference = tw.Session(learner, expire_after=self.put.get("expire_after"))
        """told the same, in this process"""

    @property
    def path(self):
        return f"/v1/sessions/{self.name}"

    def begin(self, caller):
        status, answer = caller.insist("PUT", self.path, self.put)
        assert status in (200, 201), answer
        self.names = answer["names"]

    def go_on(self, caller):
        """The next thing that happens to the session."""
        due, chance = [r + 1 for r in self.reference.pending], self.rng.random()
        if chance < 0.2 or (chance < 0.4 and len(due) < 3):
            self._decide(caller, None if chance < 0.1 else self._ahead())
        elif chance < 0.8:
            self._observe(caller, self.rng.choice([*due, self.reference.round + 1]))
        elif chance < 0.9:
            self._observe_many(caller, due)
        else:
            self.look_back(caller, self.rng)

    def _ahead(self):
        """A round that is not decided yet."""
        last = max([self.reference.round, *self.reference.pending])
        return last + 1 + self.rng.choice([0, 1, 1, 2, 3])

    def _decide(self, caller, number):
        body = {} if number is None else {"round": number}
        status, answer = caller.insist("POST", f"{self.path}/decisions", body)
        x = self.reference.play(round=None if number is None else number - 1)
        assert status == 200, answer
        assert answer["round"] == (number or self.reference.round + 1), answer
        self._require_point(answer, x)
        self.decided[answer["round"]] = answer

    def _require_point(self, answer, x):
        found = [answer["decision"][name] for name in self.names]
        assert found == x.tolist(), f"{self.name}: {answer}, not {x.tolist()}"

    def _content(self, number):
        n, told = len(self.names), {"round": number}
        told["costs"] = [self.rng.uniform(-1, 1) for _ in range(n)]
        if self.rng.random() < 0.5:
            told["costs"] = dict(zip(self.names, told["costs"], strict=True))
        if self.rng.random() < 0.8:
            told["capacities"] = [self.rng.uniform(0.1, 0.9) for _ in range(n)]
        if self.rng.random() < 0.2:
            told["played"] = np.eye(n)[self.rng.randrange(n)].tolist()
        return told

    def _tell_reference(self, told):
        given = {
            key: np.array(list(value.values()) if isinstance(value, dict) else value, dtype=float)
            for key, value in told.items()
            if key != "round"
        }
        self.reference.observe(round=told["round"] - 1, **given)

    def _observe(self, caller, number):
        told = self._content(number)
        status, answer = caller.insist("POST", f"{self.path}/observations", told)
        assert status == 200, answer
        self._tell_reference(told)
        assert answer["round"] == number, answer
        assert answer["rounds"] <= self.reference.rounds, answer
        self.observed[number] = told, answer

    def _observe_many(self, caller, due):
        """Some that wait, in some order; where none does, the coming ones."""
        count = self.rng.randint(1, 4)
        numbers = self.rng.sample(due, min(count, len(due)))
        if not numbers:
            numbers = [self.reference.round + 1 + i for i in range(count)]
        told = [self._content(number) for number in numbers]
        status, answer = caller.insist("POST", f"{self.path}/observations", {"observations": told})
        assert status == 200, answer
        assert [one.get("round") for one in answer["observations"]] == numbers, answer
        for one in told:
            self._tell_reference(one)
            self.observed[one["round"]] = one, None

    def look_back(self, caller, rng, *, patient=True):
        """Ask for, or post again, something that was acknowledged."""
        ask = caller.insist if patient else caller.ask
        if rng.random() < 0.4 and self.decided:
            number, was = rng.choice(list(self.decided.items()))
            self._require_decision(number, was, *ask("GET", f"{self.path}/decisions/{number}"))
        elif self.observed:
            number, (told, was) = rng.choice(list(self.observed.items()))
            other = rng.random() < 0.2
            if other:
                told = told | {"costs": [7.0] * len(self.names)}
            status, answer = ask("POST", f"{self.path}/observations", told)
            assert status in (409 if other else 200, 503), answer
            if status == 200:
                assert answer["round"] == number, answer
                require_same(answer, was)

    def _require_decision(self, number, was, status, answer):
        """The bits that were acknowledged, or nothing where the round expired."""
        if status == 200:
            assert answer["decision"] == was["decision"], f"{answer}, not {was}"
        else:
            may_expire = "expire_after" in self.put and number not in self.observed
            assert status == 503 or (status == 404 and may_expire), answer

    def judge(self, caller):
        """Hold what the server has against what it acknowledged, and against the twin."""
        _, now = caller.insist("GET", self.path)
        reference = self.reference
        assert now["rounds"] == reference.rounds == len(self.observed), (now, len(self.observed))
        assert now["pending"] == [r + 1 for r in reference.pending], now
        _, history = caller.insist("GET", f"{self.path}/history?most=1000")
        rounds = [one["round"] for one in history["rounds"] if one["cost"] is not None]
        assert sorted(rounds) == sorted(self.observed), "lost or doubled"
        for number, was in self.decided.items():
            path = f"{self.path}/decisions/{number}"
            self._require_decision(number, was, *caller.insist("GET", path))
        for told, was in self.observed.values():
            status, answer = caller.insist("POST", f"{self.path}/observations", told)
            assert status == 200, answer
            require_same(answer, was)
        _, answer = caller.insist("POST", f"{self.path}/decisions", {})
        self._require_point(answer, reference.play())


def require_same(answer, was):
    """Hold the answer to what was posted again against the first, where there was one."""
    assert was in (None, answer), f"{answer}, not {was}"


class Storm:
    """Owners and others on a server that is killed."""

    def __init__(self, server, seed, sessions=6, callers=3):
        self.server, self.seed, self._rng = server, seed, random.Random(seed)
        self.owners = [
            Owner(f"{kind}.{i}", kind, random.Random(seed + 7 * i))
            for i, kind in zip(range(sessions), itertools.cycle(KINDS))
        ]
        self._callers, self._failed = callers, list[BaseException]()
        self._over, self._lost = threading.Event(), threading.Event()
        self.lives = 0
        """of servers under which something was acknowledged"""

    @property
    def acknowledged(self):
        """Observations so far."""
        return sum(len(owner.observed) for owner in self.owners)

    def _caller(self):
        caller = Caller(self.server)
        caller.gives_up = self._lost
        return caller

    def _work(self, number):
        caller, own = self._caller(), self.owners[number :: self._callers]
        try:
            for owner in own:
                owner.begin(caller)
            while not self._over.is_set():
                for owner in own:
                    owner.go_on(caller)
        except BaseException as error:
            self._failed.append(error)
        caller.hang_up()

    def _pester(self):
        """Ask about everybody's past, without being heard always."""
        caller, rng = self._caller(), random.Random(self.seed - 1)
        while not self._over.wait(1e-3):
            try:
                rng.choice(self.owners).look_back(caller, rng, patient=False)
            except LOST:
                time.sleep(5e-3)
            except RuntimeError as error:  # an owner was just told something
                if "changed size" not in str(error):
                    self._failed.append(error)
            except BaseException as error:
                self._failed.append(error)
                break
        caller.hang_up()

    def rage(self, kills):
        """Kill the server so many times under load, and start it again each time."""
        work = [threading.Thread(target=self._work, args=(i,)) for i in range(self._callers)]
        work.append(threading.Thread(target=self._pester))
        for one in work:
            one.start()
        try:
            for _ in range(kills):
                self._live_and_die()
        except BaseException:
            self._lost.set()
            raise
        finally:
            self._over.set()
            for one in work:
                one.join()
        self._raise()

    def _live_and_die(self):
        before, patience = self.acknowledged, self._rng.randrange(-4, 25)
        while self.acknowledged < before + patience and not self._failed:
            time.sleep(1e-3)
        time.sleep(0.02 * self._rng.random())
        if self._rng.random() < 0.1:
            code = self.server.terminate()
            assert code == 0, f"seed {self.seed}: it ended with {code}\n{self.server.said()}"
        else:
            self.server.kill()
        self._raise()
        self.lives += self.acknowledged > before
        self.server.start(ready=False)
        if self._rng.random() < 0.15:  # while it starts
            time.sleep(0.1 * self._rng.random())
            self.server.kill()
            self.server.start(ready=False)
        self.server.wait_until_ready()

    def judge(self):
        """Kill it once more, and hold all of it against what was acknowledged."""
        self.server.kill()
        self.server.start()
        caller = Caller(self.server)
        for owner in self.owners:
            try:
                owner.judge(caller)
            except AssertionError as error:
                raise AssertionError(f"{owner.name} of seed {self.seed}: {error}") from error
        caller.hang_up()

    def _raise(self):
        if self._failed:
            raise AssertionError(
                f"seed {self.seed}, after {self.acknowledged} observations: {self._failed[0]!r}\n"
                f"{self.server.said()[-2000:] if self.server.pid else ''}"
            ) from self._failed[0]
