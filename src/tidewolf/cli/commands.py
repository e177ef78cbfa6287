"""The commands `live`, `check`, `paper`, `serve`, `backup` and `restore`.

`tidewolf live`: rows in, decisions out. Every line is answered with one line, a decision or
{"error": ..., "line": ...}, so that the sender can wait for the answer. A refusal is also written
to stderr.

`tidewolf check` tests a set, a batch of functions or a learner of the user's, a class or an
instance. The user's code may raise anything while it is imported or called: that becomes one error
message.

`tidewolf paper` runs the experiments of the paper and writes one page.

`tidewolf serve`, `backup` and `restore`: sessions over HTTP, and copies of them. A backup is of one
moment: every session in it is as its last acknowledged observation left it. A session that is
restored begins a new epoch, so that its clients notice, and resumes from there.
"""

import json
import os
import signal
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib import import_module
from inspect import isabstract
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from tidewolf import functions, sets
from tidewolf.cli import screen
from tidewolf.cli.screen import AsJson, Quiet, Stop, Stopped, arg, flag, opt, stoppable
from tidewolf.core import arguments, arrays, checkpoint, errors
from tidewolf.core.errors import InvalidInput, NotSupported, TidewolfError, refuse, require
from tidewolf.core.lazy import Lazy
from tidewolf.core.randomness import generator
from tidewolf.experiments import Tables, load
from tidewolf.experiments.building import RoundReader
from tidewolf.experiments.experiment import TABLES
from tidewolf.methods.base import Learner

# Parts that single commands need.
_PARTS = ("live", "testing", "testing.checks", "report.charts", "report.paper", "storage.copies")
live, testing, checks_of, charts, paper, copies = (Lazy(f"tidewolf.{name}") for name in _PARTS)


def live_command(
    experiment: Annotated[Path, arg("FILE", "An experiment file (`tidewolf new network`).")],
    db: Annotated[Path, opt("DB", "The file that keeps everything, such as routing.db.", "--db")],
    once: Annotated[bool, flag("Print the next decision and stop.", "--once")] = False,
    follow: Annotated[bool, flag("Take the rows of the file's tables.", "--follow")] = False,
    every: Annotated[float, opt("SECONDS", "How often --follow reads the tables.")] = 1.0,
    as_json: Annotated[bool, flag("Print lines of JSON, also on a terminal.", "--json")] = False,
) -> None:
    """Turn rows into decisions, one by one, for as long as they come.

    Reads rows as lines of JSON and answers each with the decision of the next round: {"round",
    "time", "after", "decision", "paths", "moved", "why", "cost", "violation"}. Line k is the
    decision of round k + 1, written after row k; --once prints the next decision, at first that of
    round 1, and reads nothing. time is that of the next round, if it is known; after that of the
    row; cost and violation are those of the decision before. A row has costs, and perhaps
    capacities, demands, weights and budget, by name or as lists; time or round (from 1); played,
    if that was not the decision; and unavailable, the entries that are out in the next round. A
    line with unavailable alone has the next round decided again.

    Everything is kept in DB: killed at any moment, the same command resumes (bit for bit on the
    same machine). The same row twice is the same row and gets the same answer. The same time with
    other values, or a line that is not a row, is answered with {"error", "line"} and changes
    nothing; the exit code is 3 then. With gaps = "last" under [stream] a row may lack numbers, or
    have null: they are the last ones. --follow takes the tables of [stream] instead; a row counts
    once every table has it. With --once it takes the rows that are there and prints the next
    decision. The first of the file's learners decides, Ensemble if it names none.

    \b
    Examples:
      tidewolf live network.toml --db routing.db < rows.jsonl > decisions.jsonl
      tidewolf live network.toml --db routing.db --once
      tidewolf live network.toml --db routing.db --follow --every 60
    """
    refuse(
        not 0.0 < every < float("inf"), f"--every is a number of seconds above 0, not {every:g}."
    )
    reader, out = RoundReader(load(experiment)), _Screen(as_json)
    try:
        with stoppable() as stop, _opened(reader, db, once and not follow) as runner:
            with suppress(Stopped):
                if follow:
                    _follow(runner, out, every, once, stop)
                elif not once:
                    _answer_lines(runner, out, stop)
            if once:
                out.decision(runner.answer())
            rounds = runner.rounds
    except BrokenPipeError:  # the reader of the answers is gone; every row that was taken is kept
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return
    if stop():
        report = f"Stopped after {rounds:,} row{'s' * (rounds != 1)}; the same command resumes."
        if signal.SIGINT in stop.signals:
            raise errors.Interrupted(report)
        sys.stderr.write(f"{report}\n")
    if out.refused:
        raise typer.Exit(3)


def _opened(reader: RoundReader, db: Path, read_only: bool) -> Any:
    learner = live.live_learner(reader)
    if read_only and db.exists():  # unless another process writes, or no process can
        with suppress(errors.InUse, errors.CheckpointError):
            return live.LiveRunner(reader, learner, db)
    return live.LiveRunner(reader, learner, db, read_only=read_only)


def _answer_lines(runner: Any, out: "_Screen", stop: Stop) -> None:
    if sys.stdin is None:  # it was closed before the command began
        return
    if sys.stdin.isatty():
        sys.stderr.write('Rows are lines such as {"costs": {"SEA > DEN": 1.2}}; Ctrl-D ends.\n')
    number = 0
    while not stop():
        number += 1
        with stop.waiting():
            text = rest = sys.stdin.buffer.readline(live.LONGEST + 1)
            while len(rest) > live.LONGEST and not rest.endswith(b"\n"):
                rest = sys.stdin.buffer.readline(live.LONGEST + 1)
        if not text:
            return
        if not text.strip():
            continue
        try:
            out.decision(runner.take(live.parse(text)))
        except TidewolfError as error:
            out.refusal(str(error), number)


def _follow(runner: Any, out: "_Screen", every: float, once: bool, stop: Stop) -> None:
    experiment = runner.reader.experiment
    stream = experiment.stream
    assert isinstance(stream, Tables)
    refuse(
        stream.context is not None or stream.advice,
        "--follow takes no context or advice: send rows as lines of JSON.",
    )
    paths = {
        **{name: path for name in TABLES if (path := getattr(stream, name)) is not None},
        **{f"spend {budget.name}": path for budget, path in experiment.budgets},
    }
    follower = live.Follower(paths, experiment.files, stream.gaps)
    while not stop():
        for place, line in follower.poll():
            before = runner.rounds
            if line is None:
                sys.stderr.write(f"{place}: a number is missing; the row is not used.\n")
                continue
            try:
                answer = runner.take(line)
            except InvalidInput as error:
                raise type(error)(f"{place}: {error}") from None
            if runner.rounds > before and not once:
                out.decision(answer)
            if stop():
                return
        if once:
            return
        with stop.waiting():
            time.sleep(every)


class _Screen:
    def __init__(self, as_json: bool) -> None:
        self._as_text = sys.stdout.isatty() and not as_json
        self.refused = 0

    def decision(self, text: str) -> None:
        self._write(_in_words(json.loads(text)) if self._as_text else text)

    def refusal(self, sentence: str, line: int) -> None:
        self.refused += 1
        sys.stderr.write(f"Line {line}: {sentence}\n")
        if not self._as_text:
            self._write(json.dumps({"error": sentence, "line": line}, ensure_ascii=False))

    def _write(self, text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def _in_words(answer: dict[str, Any]) -> str:
    first = f"Round {answer['round']:,}"
    if "time" in answer:
        first += f", {answer['time']}"
    if answer["cost"] is not None:
        cost, violation = answer["cost"], answer["violation"]
        first += f"; the round before cost {cost:.4g}, violation {violation:.3g}"
    shares = [(share, name) for name, share in answer["decision"].items()]
    if "paths" in answer:
        shares = [(one["share"], one["path"]) for one in answer["paths"]]
    shares.sort(key=lambda one: -abs(one[0]))
    # Entries, or paths, of a decision that a terminal shows.
    # Smaller ones are not shown.
    listed = [one for one in shares if abs(one[0]) >= 5e-5][:8]
    lines = [first, *(f"  {share:9.4f}  {name}" for share, name in listed)]
    why = textwrap.wrap(answer["why"], 98, break_on_hyphens=False)
    return "\n".join([*lines, *(f"  {line}" for line in why)])


# --- check ----------------------------------------------------------------------------------------


def check_command(
    name: Annotated[str, arg("MODULE:NAME", "A class or an instance of your own.")],
    seed: Annotated[int, opt("S", "The random seed.")] = 0,
    checks: Annotated[bool, flag("Also name every check that passes.", "--checks")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Check a set, a batch of functions or a learner of your own.

    Reports for every example of the class (or for the instance) whether it passes. The exit code is
    0 if all do; else it is 2, and one line names the check that fails, the example, and the
    numbers. The module is imported as Python does, from the current directory too.

    \b
    Examples:
      tidewolf check mymodule:MySet
      tidewolf check mymodule:MyLearner --seed 7
      tidewolf check tidewolf.sets:Simplex --checks
      tidewolf check mymodule:MySet --json | jq '.examples[].broken'
    """
    seed = arrays.as_count(seed, "The seed", least=0)
    kind, check, examples = _found(name)
    outcomes: list[dict[str, Any]] = []
    for number, example in enumerate(examples, start=1):
        passed, broken = list[str](), None
        with screen.checking(not quiet, f"example {number} of {len(examples)}") as moved:

            def on_pass(check_name: str, passed: list[str] = passed, moved: Any = moved) -> None:
                passed.append(check_name)
                moved(check_name)

            try:
                check(example, seed=seed, on_pass=on_pass)
            except Exception as error:
                broken = checks_of.sentence_of(error)
        outcomes.append({"example": repr(example), "passed": passed, "broken": broken})
        if not (quiet or as_json):
            screen.show_outcome(repr(example), passed, broken is None, named=checks)
    if as_json:
        screen.print_json({"name": name, "kind": kind, "seed": seed, "examples": outcomes})
    for number, each in enumerate(outcomes, start=1):
        if each["broken"] is not None:
            raise errors.CheckFailed(f"Example {number} of {len(outcomes)}: {each['broken']}")


def _found(name: str) -> tuple[str, Callable[..., None], list[Any]]:
    kinds: tuple[tuple[str, type, Callable[..., None], Callable[[Any], Sequence[Any]]], ...] = (
        ("set", sets.ConvexSet, testing.check_set, lambda kind: kind.examples()),
        ("batch of functions", functions.Batch, _check_function, lambda kind: kind.examples()),
        ("learner", Learner, testing.check_learner, _learners),
    )
    thing, member = _member(name), name.rpartition(":")[2]
    for kind, base, check, examples_of in kinds:
        if isinstance(thing, base):
            return kind, check, [thing]
        if isinstance(thing, type) and issubclass(thing, base):
            if isabstract(thing):
                lacks = ", ".join(sorted(getattr(thing, "__abstractmethods__", ())))
                raise InvalidInput(f"{member} is not a complete {kind}: it lacks {lacks}.")
            with _user_code(f"The examples of {member} cannot be made"):
                examples = list(examples_of(thing))
            require(examples, InvalidInput, f"{member}.examples must return at least one {kind}.")
            return kind, check, examples
    raise errors.WrongType(
        f"{name} must be a set (ConvexSet), a batch of functions (Batch) or a learner (Learner), "
        f"not {arguments.shown(thing)}."
    )


def _member(name: str) -> Any:
    module, _, member = name.rpartition(":")
    refuse(not (module and member), f"Expected module:Name, such as mymodule:MySet, not {name!r}.")
    folder = Path.cwd()
    if module.endswith(".py"):
        file = Path(module).resolve()
        module, folder = file.stem, file.parent
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    with _user_code(f"The module {module} cannot be imported"):
        found = import_module(module)
    if not hasattr(found, member):
        hint = arguments.did_you_mean(member, dir(found))
        raise InvalidInput(f"The module {module} has nothing called {member!r}.{hint}")
    return getattr(found, member)


@contextmanager
def _user_code(failure: str) -> Iterator[None]:
    try:
        yield
    except (Exception, SystemExit) as error:
        raise InvalidInput(f"{failure}: {checks_of.sentence_of(error)}") from error


def _learners(kind: Any) -> list[Any]:
    """On a simplex, a ball and a flow; a learner may refuse some of these sets, but not all."""
    learners, refused = list[Any](), list[NotSupported]()
    for K in (sets.Simplex(3), sets.L2Ball(2), sets.FlowPolytope.examples()[0]):
        try:
            # Rounds that the examples of a learner are made for.
            learners += kind.examples(K, 60)
        except NotSupported as error:
            refused.append(error)
    if refused and not learners:
        raise refused[0]
    return learners


def _check_function(f: Any, *, seed: int, on_pass: Callable[[str], None]) -> None:
    """Functions that are not defined everywhere are tried at positive points."""
    positive = generator(seed, "tidewolf check").uniform(0.5, 2.0, (4, *f.shape))
    points = None if f.domain is None else list(positive)
    testing.check_function(f, seed=seed, points=points, on_pass=on_pass)


def paper_command(
    set_name: Annotated[str | None, opt("FILE:NAME", "A set; else Simplex(6).", "--set")] = None,
    fast: Annotated[bool, flag("Fewer rounds and seeds: under a minute.", "--fast")] = False,
    full: Annotated[bool, flag("Add T = 10,000,000 with the printed constants.", "--full")] = False,
    out: Annotated[Path, opt("DIR", "The folder of the page.")] = Path("out/paper"),
    quiet: Quiet = False,
) -> None:
    """Reproduce Garber & Kretzu (ICML 2024) on one page, DIR/index.html.

    The page shows Algorithms 1 to 5 with their code, and measures what the theorems state: how
    regret and violation grow with the horizon, oracle calls at every prefix, the worst intervals of
    Algorithm 3, means of the bandit algorithm, from which horizon on the printed constants do
    anything, and both examples of the paper. Every number has the theorem's beside it.

    \b
    Examples:
      tidewolf paper
      tidewolf paper --fast
      tidewolf paper --set mine.py:K --out out/mine
    """
    require(not (fast and full), InvalidInput, "Choose one of --fast and --full.", setting="fast")
    charts.require_extras()
    K = None
    if set_name is not None:
        expected = f"{set_name} must be a set, an instance"
        K = arguments.as_kind(_member(set_name), sets.ConvexSet, expected)
    out.mkdir(parents=True, exist_ok=True)
    with screen.checking(not quiet, "paper") as moved:
        size = paper.FAST if fast else paper.FULL if full else paper.USUAL
        found = paper.study(K, size, lambda part, done, of: moved(f"{part}: {done}", of))
    checkpoint.write(out / "index.html", paper.page(found, date=datetime.now(UTC)).encode())
    if not quiet:
        for line in textwrap.wrap(paper.verdict(found), 80):
            typer.echo(line)
        typer.echo(f"page: {out / 'index.html'}")


# --- serve, backup, restore -----------------------------------------------------------------------

Data: TypeAlias = Annotated[Path | None, opt("DIR", "The folder of the sessions.", "--data")]
DatabaseUrl: TypeAlias = Annotated[
    str | None, opt("URL", "Or their database: postgresql://..., for many servers.", "--database")
]
Names: TypeAlias = Annotated[list[str] | None, opt("NAME", "These sessions only.", "--session")]


def serve_command(
    data: Data = None,
    database: DatabaseUrl = None,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.")] = 8000,
    token_file: Annotated[Path | None, opt("FILE", "Tokens that give access, one a line.")] = None,
    insecure: Annotated[bool, flag("Give every machine access, no token.", "--insecure")] = False,
    commit_within: Annotated[float, opt("SECONDS", "How long commits wait.", min=0, max=60)] = 0.01,
    takeover_after: Annotated[float, opt("SECONDS", "When others take over, if it hangs.")] = 10.0,
    max_sessions: Annotated[int, opt("N", "Sessions, at most.", min=1)] = 10_000,
    max_body: Annotated[int, opt("BYTES", "Bytes of a body, at most.", min=1)] = 4 << 20,
    body_seconds: Annotated[float, opt("SECONDS", "Time for a body.", min=1, max=3600)] = 10.0,
    max_waiting: Annotated[int, opt("N", "Requests under way, at most.")] = 256,
    rate: Annotated[float | None, opt("N", "Requests per second and token.")] = None,
    observation_rate: Annotated[float | None, opt("N", "Observations a second and token.")] = None,
    token_sessions: Annotated[int | None, opt("N", "Sessions per token.")] = None,
    log: Annotated[bool, flag("Write a line of JSON per request to stderr.", "--log")] = False,
) -> None:
    """Serve sessions over HTTP: decisions out, observations in, everything kept.

    Prints `tidewolf serves http://...` when it is ready: what its sessions need is compiled, which
    takes up to a minute for each kind of session on a new machine, once. Every answer is durable:
    after a kill the same command resumes (bit for bit on the same machine). SIGTERM and SIGINT let
    it finish what is under way. /docs describes every address; / shows all sessions.

    A line of the file of tokens is TOKEN, or ROLE TOKEN, or ROLE PREFIX TOKEN, or ROLE PREFIX TOKEN
    NAME: a reader reads and a writer does everything, with sessions whose names begin with PREFIX
    (* is all). Without a file only this machine has access.

    \b
    Examples:
      tidewolf serve --data sessions
      tidewolf serve --data sessions --host 0.0.0.0 --token-file tokens.txt
      tidewolf serve --database postgresql://tidewolf@db/tidewolf --port 0
    """
    given = {key: at for key, at in locals().items() if key not in ("data", "database")}
    for package in ("fastapi", "orjson", "prometheus_client", "uvicorn"):
        arguments.import_extra(package, "Serving", "serve")
    from tidewolf.service.app import serve

    serve(_where(data, database), **given)


def backup_command(
    file: Annotated[Path, arg("FILE", "The copy.")],
    data: Data = None,
    database: DatabaseUrl = None,
    session: Names = None,
    force: Annotated[bool, flag("Overwrite FILE.", "--force")] = False,
) -> None:
    """Copy sessions of a service to a file, while it runs.

    The copy is of one moment. FILE is written whole or not at all.

    \b
    Examples:
      tidewolf backup --data sessions monday.db
      tidewolf backup --data sessions routing.db --session routing
      tidewolf backup --database postgresql://db/tidewolf monday.db
    """
    where = _where(data, database)
    refuse(file.exists() and not force, f"{file} exists already: use another name, or --force.")
    part = file.with_name(f"{file.name}.part")
    part.unlink(missing_ok=True)
    with screen.checking(True, "copying") as seen:
        copied = copies.backup(where, part, session or None, seen)
    os.replace(part, file)
    typer.echo(f"{_sessions(copied)} in {file}.")


def restore_command(
    file: Annotated[Path, arg("FILE", "A file of `tidewolf backup`.")],
    data: Data = None,
    database: DatabaseUrl = None,
    session: Names = None,
    replace: Annotated[bool, flag("Also replace existing sessions.", "--replace")] = False,
) -> None:
    """Restore sessions from a backup, also while the service runs.

    All of them, or none. An existing session of the same name is refused unless --replace is given;
    then its observations since the backup are lost. A running service resumes from what was
    restored.

    \b
    Examples:
      tidewolf restore monday.db --data sessions
      tidewolf restore monday.db --data sessions --session routing --replace
      tidewolf restore monday.db --database postgresql://db/tidewolf
    """
    with screen.checking(True, "restoring") as seen:
        restored = copies.restore(file, _where(data, database), session or None, replace, seen)
    typer.echo(f"{_sessions(restored)} restored.")


def _where(data: Path | None, database: str | None) -> str | Path:
    if data is not None and database is None:
        return data
    if data is not None or database is None:
        raise InvalidInput("Give --data DIR or --database URL, one of them.")
    refuse(
        not database.startswith(("postgresql://", "postgres://")),
        "--database is an address such as postgresql://user@host/name.",
    )
    return database


def _sessions(count: int) -> str:
    return f"{count:,} session{'s are' if count != 1 else ' is'}"
