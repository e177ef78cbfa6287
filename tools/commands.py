"""The page of the commands, from the commands themselves: what each does, its arguments and its
options, as `tidewolf COMMAND --help` says them; and the page of experiment files, as `tidewolf new`
writes them.
"""

import re
from pathlib import Path
from textwrap import dedent
from typing import Any

from tools.docstring_markup import as_rst

_OPENING = """\
Commands
========

The text of ``tidewolf --help`` and ``tidewolf COMMAND --help``. It needs the extra ``app``.

The exit code is 0 on success. It is 2, with one sentence on stderr, for invalid input and for a
failed check, and 130 after an interrupt. Results go to stdout, everything else to stderr.
"""
_FILES = """\
Experiment files
================

``tidewolf new`` writes a file that runs as it is, with every key explained. ``tidewolf list
NAME`` shows the settings of one set, function, learner or problem; they are the keys beside its
``kind``, and the parameters of its page in this reference.

Your own network
----------------

``tidewolf new network`` writes this file, and small tables beside it.

.. code-block:: toml

{network}

Your own stream, or a built-in problem
--------------------------------------

``tidewolf new`` writes this file.

.. code-block:: toml

{stream}
"""


def page() -> str:
    """All commands, in the order in which `tidewolf --help` lists them."""
    import typer
    from typer.main import get_command

    from tidewolf.cli.app import app

    group: Any = get_command(app)
    top = typer.Context(group, info_name="tidewolf")
    parts = [_OPENING, *_text(group.help), _table(group, top)]
    for name, command in group.commands.items():
        context = typer.Context(command, info_name=name, parent=top)
        title = f"tidewolf {name}"
        usage = command.get_usage(context).removeprefix("Usage: ")
        parts += [
            f"\n.. _tidewolf-{name}:\n\n{title}\n{'-' * len(title)}\n",
            f".. code-block:: text\n\n   {' '.join(usage.split())}\n",
            *_text(command.help),
            _table(command, context),
        ]
    return "\n".join(parts)


def files() -> str:
    """Experiment files as `tidewolf new` writes them."""
    from tidewolf.experiments.templates import network_template, template

    path = Path("network.toml")
    network = network_template(path)[path].decode()
    return _FILES.format(
        network=_indented(network), stream=_indented(template("experiment", "routing"))
    )


def _text(help_text: str) -> list[str]:
    """Paragraphs; one that follows a \\b is shown line by line."""
    found = []
    for paragraph in re.split(r"\n\s*\n", help_text.strip()):
        head, mark, lines = paragraph.partition("\b\n")
        if mark:
            title, _, rest = lines.partition("\n")
            found += [f"{title.rstrip(':')}:\n\n.. code-block:: console\n", _indented(rest), ""]
        else:
            found += ["\n".join(as_rst(head.split("\n"))), ""]
    return found


def _table(command: Any, context: Any) -> str:
    """Arguments and options, with what is said of each."""
    rows = []
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record:
            given = " ".join(record[0].split())
            said = " ".join(as_rst([record[1] or ""]))
            rows.append(f"   * - ``{given}``\n     - {said}")
    return ".. list-table::\n   :widths: 35 65\n\n" + "\n".join(rows) + "\n"


def _indented(text: str) -> str:
    return "\n".join(f"   {line}".rstrip() for line in dedent(text).strip("\n").split("\n"))
