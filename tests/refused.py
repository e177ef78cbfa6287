"""A call or a command that must be refused: the kind of error, what it names, and one sentence."""

from contextlib import contextmanager

import pytest

from tidewolf.cli import main


@contextmanager
def refused(error, setting=None):
    """The body raises `error`, which names `setting` if one is given, and ends as a sentence."""
    with pytest.raises(error) as caught:
        yield
    said = str(caught.value)
    assert said.endswith((".", "?")), said
    if setting is not None:
        assert caught.value.setting == setting


def refused_command(capsys, *words):
    """The sentence with which a command ends that prints nothing else."""
    capsys.readouterr()
    assert main([str(word) for word in words]) == 2, words
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1), words
    assert printed.err.endswith((".\n", "?\n")), words
    return printed.err.strip()
