"""Set the weights of HAProxy's servers to the decisions of `tidewolf serve`.

    python controller.py --haproxy /run/haproxy/admin.sock --backend web --terms terms.json

Per round: ask the service for a share per server; set weights; wait; read HAProxy's statistics;
send what the round has shown.

    costs       price + VALUE * latency of each server      dollars per million requests
    capacities  quota / requests per second                 share of the requests
    unavailable servers that HAProxy reports as down

`terms.json` has the price and the quota of each server as of now, and is read in every round:
{"lisbon": {"price": 2.0, "quota": 40.0}, ...}. Latency is that of HAProxy's last health check, so
it is known for servers without requests, too; a server without a check counts as the slowest. If
the service does not answer, the weights stay.
Only the standard library is needed. TIDEWOLF_TOKEN is the token of the service, if it needs one.
"""

import argparse
import csv
import json
import os
import socket
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

VALUE = 100.0
"""What a second of latency is worth, in dollars per million requests."""
FULL = 256
"""The largest weight of HAProxy, here for all of the requests."""


class Controller:
    """The shares of one backend, from one session of the service."""

    def __init__(self, haproxy, backend, terms, service, session="haproxy"):
        self.haproxy, self.backend, self.terms = str(haproxy), backend, Path(terms)
        self.url = f"{service}/v1/sessions/{session}"
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def begin(self):
        """Create the session; nothing changes if it exists."""
        names = list(self.statistics())
        description = {"set": {"kind": "Simplex", "n": len(names)}, "names": names}
        self.ask("PUT", "", description)

    def play(self, seconds):
        """Play one round; returns the decision and what was observed."""
        before, began = self.statistics(), time.monotonic()
        down = [name for name, row in before.items() if row["status"].startswith(("DOWN", "MAINT"))]
        out = down if len(down) < len(before) else []  # if all are, no weights are better
        decided = self.ask("POST", "/decisions", {"unavailable": out} if out else {})
        self.set_weights(decided["decision"])
        time.sleep(seconds)
        after, terms = self.statistics(), json.loads(self.terms.read_text())
        requests = sum(int(after[name]["stot"]) - int(before[name]["stot"]) for name in before)
        rate = max(requests, 1) / (time.monotonic() - began)
        checks = {name: row["check_duration"] for name, row in after.items()}
        slowest = max((int(each) for each in checks.values() if each), default=0)
        latency = {name: int(each or slowest) / 1e3 for name, each in checks.items()}
        observed = {
            "round": decided["round"],
            "costs": {name: terms[name]["price"] + VALUE * latency[name] for name in after},
            "capacities": {name: terms[name]["quota"] / rate for name in after},
        }
        self.ask("POST", "/observations", observed)
        return decided["decision"], observed

    def set_weights(self, shares):
        """One command per server; HAProxy answers with text if it refuses one."""
        server = f"set server {self.backend}/"
        commands = [f"{server}{name} weight {round(FULL * x)}" for name, x in shares.items()]
        if refused := self.command("; ".join(commands)).strip():
            raise OSError(f"HAProxy should have set the weights, and answered {refused!r}.")

    def statistics(self):
        """A row of HAProxy's statistics for each server."""
        lines = self.command(f"show stat {self.backend} 4 -1").removeprefix("# ").splitlines()
        return {row["svname"]: row for row in csv.DictReader(filter(None, lines))}

    def command(self, text):
        """The answer of the Runtime API."""
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(5.0)
            line.connect(self.haproxy)
            line.sendall(f"{text}\n".encode())
            return b"".join(iter(lambda: line.recv(65536), b"")).decode()

    def ask(self, method, path, body):
        """The answer of the service."""
        headers = {"Content-Type": "application/json"}
        if token := os.environ.get("TIDEWOLF_TOKEN"):
            headers["Authorization"] = f"Bearer {token}"
        data = json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with self._opener.open(request, timeout=120.0) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise OSError(f"{error}: {error.read().decode()}") from None


def main():
    parser = argparse.ArgumentParser(description="Set HAProxy's weights by tidewolf serve.")
    parser.add_argument("--haproxy", default="/run/haproxy/admin.sock", help="its stats socket")
    parser.add_argument("--backend", required=True, help="the backend with the servers")
    parser.add_argument("--terms", required=True, help="JSON with prices and quotas")
    parser.add_argument("--service", default="http://127.0.0.1:8000", help="tidewolf serve")
    parser.add_argument("--seconds", type=float, default=5.0, help="length of a round")
    given = parser.parse_args()
    controller = Controller(given.haproxy, given.backend, given.terms, given.service)
    while True:
        try:
            controller.begin()
            while True:
                print(json.dumps(controller.play(given.seconds)[0]), flush=True)
        except OSError as error:
            print(f"The weights stay as they are: {error}", file=sys.stderr, flush=True)
            time.sleep(given.seconds)


if __name__ == "__main__":
    main()
