"""A call that must be refused: the kind of error, the setting it names, and one sentence."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def refused(error: type[Exception], setting: str | None = None) -> Iterator[None]:
    """The body raises `error`, which names `setting` if one is given, and ends as a sentence."""
    with pytest.raises(error) as caught:
        yield
    said = str(caught.value)
    assert said.endswith((".", "?")), said
    if setting is not None:
        assert caught.value.setting == setting
