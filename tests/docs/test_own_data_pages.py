"""The commands of the pages about one's own files do what is shown."""

import re
import shlex
from pathlib import Path

import pandas as pd
import pytest
from test_docs import alike

from test_own_data import said

PAGES = {"own-data": "docs/how-to/own-data.md", "start": "docs/start/files.md"}


def commands(page):
    """The commands of a page that begin with `tidewolf new network` or speak of its file, and what
    is shown of their output.
    """
    text, found = (Path(__file__).parents[2] / PAGES[page]).read_text(), []
    for block in re.findall(r"```console\n(.*?)```", text, flags=re.DOTALL):
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            if re.search(r"tidewolf \w+ network\b", command):
                found.append((command.partition("  #")[0].strip(), shown))
    return found


def is_shown(shown, printed):
    """Whether each part of what is shown, between lines of three points, is printed, in order; but
    for how long it took, the room between words, and the last digits of numbers.
    """
    words = without_seconds(printed).split()
    for part in without_seconds(shown).split("...\n"):
        wanted = part.split()
        starts = range(len(words) - len(wanted) + 1)
        at = next((i for i in starts if all(map(alike, wanted, words[i:]))), None)
        if at is None:
            return False
        words = words[at + len(wanted) :]
    return True


def without_seconds(text):
    lines, timed = [], False
    for line in text.splitlines():
        header = line.rstrip().endswith(("seconds", "secs"))
        timed = header or (timed and line[:1].strip(" .") != "")
        lines.append(line.rstrip().rpartition(" ")[0] if timed else line)
    return "".join(f"{line}\n" for line in lines)


SHOWN = [("start", "new|run (?!.*before)"), ("own-data", "run .*before"), ("own-data", "compare")]


@pytest.mark.parametrize(("page", "which"), SHOWN)
def test_the_commands_of_a_page_do_what_is_shown(page, which, here):
    asked = commands(page)
    said("new", "network")
    for command, shown in asked:
        if re.match(f"tidewolf ({which})", command):
            more = ["--force"] if " new " in command else []
            printed = said(*shlex.split(command)[1:], *more)
            assert is_shown(shown, printed), f"{command}:\n{printed}"


def test_the_files_of_the_first_page_are_run(here):
    said("new", "network")
    text = (Path(__file__).parents[2] / PAGES["start"]).read_text()
    first, second = re.findall(r"```toml\n(.*?)```", text, flags=re.DOTALL)
    Path("network.toml").write_text(first)
    assert "limits_a_round" in said("run", "network.toml", "--dry-run", "--json", "--rounds", "30")
    Path("shares.toml").write_text(second)
    for name in ("prices.csv", "room.csv"):
        Path(name).write_text("time,lisbon,porto,faro\n1,0.5,0.4,0.6\n2,0.4,0.6,0.5\n")
    said("run", "shares.toml", "--learner", "LyapunovDescent", "--out", "out")
    assert list(pd.read_csv("out/decisions.csv").columns) == ["time", "lisbon", "porto", "faro"]
