"""Read an experiment from a TOML file. Errors name line and column.

    [set]  [stream]  [[learners]]  rounds  seeds  caution  [files]  [sweep]  [outputs]

Paths are seen from the file's folder.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tidewolf.core.arguments import as_path
from tidewolf.core.errors import InvalidInput, MissingExtra, NewerFormat
from tidewolf.experiments.experiment import FILE_FORMAT, Experiment, Tables
from tidewolf.experiments.toml import parse
from tidewolf.files.format import FileFormat


def load(path: str | os.PathLike[str]) -> Experiment:
    """Read an experiment from a TOML file.

    Parameters
    ----------
    path : str or path
        The file; the paths in it are seen from its folder. `tidewolf new` writes one with every
        key explained.

    Returns
    -------
    Experiment
        What the file says, every setting of a kind that is accepted. Tables and graphs are read
        when it is built (`Experiment.problem`).

    Raises
    ------
    InvalidInput
        If the file cannot be read, or a key or value is not accepted: the sentence begins with
        file, line and column.
    NewerFormat
        If a newer tidewolf wrote the file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "small.toml"
    >>> _ = file.write_text('rounds = 20\\n[stream]\\nproblem = "adversarial"\\n')
    >>> experiment = tw.experiments.load(file)
    >>> experiment.name, len(experiment.problem(seed=0))
    ('small', 20)
    """
    path = as_path(path, "The path of an experiment")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} cannot be read as text in UTF-8: {error}.") from None
    except OSError as error:
        raise InvalidInput(f"No experiment can be read from {path}: {error.strerror}.") from None
    return read(text, path)


def read(text: str, path: Path) -> Experiment:
    """The experiment in the text of a file at `path`."""
    try:
        from pydantic import ValidationError

        from tidewolf.experiments.models import File, Source
        from tidewolf.experiments.strict import refusal
    except ImportError:
        raise MissingExtra(
            'Experiment files are read with pydantic: pip install "tidewolf[app]".'
        ) from None
    document = parse(text, str(path))
    written_by = document.data.get("format")
    if type(written_by) is int and written_by > FILE_FORMAT:
        raise NewerFormat(
            f"{document.place('format')}: this tidewolf reads formats up to {FILE_FORMAT}, not "
            f"{written_by}. Install a newer tidewolf."
        )
    try:
        file = File.model_validate(document.data, context=Source(path.parent))
    except ValidationError as error:
        where, sentence = refusal(error, document.data, File)
        raise document.refused(sentence, *where) from None
    return Experiment(
        name=path.stem if file.name is None else file.name,
        stream=Tables() if file.stream is None else file.stream,
        hard_set=file.set,
        learners=_each(file.learners),
        swept=file.sweep,
        rounds=file.rounds,
        seeds=_each(file.seeds),
        cautions=() if file.caution is None else _each(file.caution),
        title=file.title or "",
        files=FileFormat(**file.files.given),
        incumbent=file.incumbent,
        document=document,
        **dict(file.outputs),
    )


def _each(given: Any) -> tuple[Any, ...]:
    """Values, each once: a list of them, or one."""
    return tuple(dict.fromkeys(given if isinstance(given, list) else [given]))
