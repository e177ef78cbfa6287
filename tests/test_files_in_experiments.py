"""Experiments on files as people have them: the same network in every form is the same problem."""

from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pytest

import tidewolf as tw
from tidewolf.experiments import load
from tidewolf.experiments.jobs import Recipe

LINKS = (("SEA", "DEN"), ("DEN", "NYC"), ("SEA", "ORD"), ("ORD", "NYC"), ("ORD", "DEN"))
NAMES = tuple(f"{tail} > {head}" for tail, head in LINKS)
ROUNDS = 30
START = datetime(2024, 1, 20)
TIMES = [START + timedelta(hours=12 * i) for i in range(ROUNDS)]
RNG = np.random.default_rng(5)
NUMBERS = {
    "costs": (1.0 + RNG.random((ROUNDS, len(LINKS)))).round(3),
    "capacities": (0.6 + RNG.random((ROUNDS, len(LINKS)))).round(3),
}
EDGES = [("tail", "head", "km"), *((*link, 1.5 * i + 1) for i, link in enumerate(LINKS))]
TOML = """\
[set]
graph = "{graph}"
source = "SEA"
target = "NYC"
lengths = "km"

[stream]
costs = "{costs}"
capacities = "{capacities}"
{more}
[[learners]]
name = "LyapunovDescent"
"""


def rows(name, time=lambda t: t):
    pairs = zip(TIMES, NUMBERS[name].tolist(), strict=True)
    return [("time", *NAMES), *((time(t), *row) for t, row in pairs)]


def csv(path, cells, separator=",", decimal=".", encoding="utf-8"):
    def text(cell):
        return repr(cell).replace(".", decimal) if isinstance(cell, float) else str(cell)

    lines = (separator.join(map(text, row)) + "\n" for row in cells)
    path.write_text("".join(lines), encoding=encoding)


def plain(folder):
    csv(folder / "links.csv", EDGES)
    for name in NUMBERS:
        csv(folder / f"{name}.csv", rows(name, datetime.isoformat))
    return TOML.format(graph="links.csv", costs="costs.csv", capacities="capacities.csv", more="")


def semicolons(folder):
    form = {"separator": ";", "decimal": ",", "encoding": "cp1252"}
    csv(folder / "links.csv", EDGES, **form)
    for name in NUMBERS:
        csv(folder / f"{name}.csv", rows(name, lambda t: f"{t:%d.%m.%Y %H:%M}"), **form)
    more = '[files]\nseparator = ";"\ndecimal = ","\nencoding = "cp1252"\n'
    more += 'date_format = "%d.%m.%Y %H:%M"\n'
    return TOML.format(graph="links.csv", costs="costs.csv", capacities="capacities.csv", more=more)


def excel(folder):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for sheet, cells in {"Links": EDGES, **{name: rows(name) for name in NUMBERS}}.items():
        made = book.create_sheet(sheet)
        for row in cells:
            made.append(row)
    book.remove(book["Sheet"])
    book.save(folder / "network.xlsx")
    tables = {name: f"network.xlsx#{name}" for name in NUMBERS}
    return TOML.format(graph="network.xlsx", more="", **tables)


def written(folder, form):
    folder.mkdir(exist_ok=True)
    (folder / "network.toml").write_text(form(folder))
    return load(folder / "network.toml")


@pytest.mark.parametrize("form", [semicolons, excel])
def test_the_same_network_in_every_form_is_the_same_problem(tmp_path, form):
    expected = written(tmp_path / "plain", plain).problem(0)
    experiment = written(tmp_path / "other", form)
    problem = experiment.problem(0)
    assert (problem.labels, problem.K) == (expected.labels, expected.K)
    np.testing.assert_array_equal(problem.stream.time, expected.stream.time)
    x = expected.K.center
    for ours, theirs in (
        (problem.stream.losses, expected.stream.losses),
        (problem.stream.constraints, expected.stream.constraints),
    ):
        np.testing.assert_array_equal(ours.values(x), theirs.values(x))
    run = tw.run(experiment.learner(experiment.entrants()[0], problem, 0), problem.stream)
    assert len(run.losses) == ROUNDS


def test_formats_and_gaps_go_through_a_file_and_back(tmp_path):
    experiment = written(tmp_path, semicolons)
    stream = replace(experiment.stream, gaps="unseen")
    files = replace(experiment.files, timezone="Europe/Berlin", separator="\t")
    told = replace(experiment, stream=stream, files=files).resolved(ROUNDS)
    (tmp_path / "again.toml").write_text(told.toml())
    again = load(tmp_path / "again.toml")
    assert again == told
    assert (again.files, again.stream.gaps) == (files, "unseen")
    assert "[files]" not in written(tmp_path / "plain", plain).resolved(ROUNDS).toml()


def test_formats_gaps_and_sheets_tell_sweeps_apart(tmp_path):
    experiment = written(tmp_path, excel)
    found = [
        experiment,
        replace(experiment, files=tw.problems.FileFormat(timezone="UTC")),
        replace(experiment, stream=replace(experiment.stream, gaps="last")),
        replace(experiment, stream=replace(experiment.stream, capacities=experiment.stream.costs)),
    ]
    identities = [Recipe.of(each).identity for each in found]
    assert len(set(identities)) == len(identities)
    assert Recipe.of(load(tmp_path / "network.toml")).identity == identities[0]
