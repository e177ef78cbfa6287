"""What was answered in a round, as the store keeps it: a line of JSON, then numbers in binary.

{"mode": ..., "source": ..., ...} \\n decision (8 bytes an entry) [proposal (the same)]
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import numpy as np

from tidewolf.core.errors import InvalidInput
from tidewolf.core.types import Floats

_NUMBER = np.dtype("<f8")
_LISTED = re.compile(r"(expired, with nothing told of (?:them|it)(?::|, last) )([\d, ]+)")
_ROUND = re.compile(r"(\b[Rr]ound |\bround=|\brollback\()(\d+)")


class Note(NamedTuple):
    """What was answered in a round, and whether it was observed.

    Parameters
    ----------
    decision : array, optional
        What was answered, flat; what was played, where no point was known. None: neither.
    mode : str, default "live"
        In which mode.
    source : str, default "learner"
        Whose point it is.
    reason : str, default ""
        Why.
    proposal : array, optional
        What the learner would have played, where that is another point.
    info_id : str, default ""
        The identity of what was known; empty where nothing was.
    serial : int, default 0
        How often the settings had been changed.
    era : int, default 0
        Which names the entries have.
    observed : bool, default False
        Whether the round is over.
    fell : bool, default False
        Whether something wanted more failed, or could not be played.
    rounds : int, default 0
        How many had been observed, this one among them; 0 where it was not.
    played : "", "given" or "answered", default ""
        Whether what was played was given, or was the answer in place of the decision; empty where
        it was the decision.
    demands : list of float, optional
        What each commodity sent, as far as it was said.
    saved : list of float, optional
        Loss and violation that the learner's decisions would have saved so far, and over how many
        rounds; None where they were played in all of them.
    """

    decision: Floats | None
    mode: str = "live"
    source: str = "learner"
    reason: str = ""
    proposal: Floats | None = None
    info_id: str = ""
    serial: int = 0
    era: int = 0
    observed: bool = False
    fell: bool = False
    rounds: int = 0
    played: Literal["", "given", "answered"] = ""
    demands: list[float] | None = None
    saved: list[float] | None = None

    def encode(self) -> bytes:
        """As bytes."""
        said: dict[str, Any] = {
            key: value
            for key, value in zip(self._fields, self, strict=True)
            if key not in ("decision", "proposal") and value != self._field_defaults[key]
        }
        arrays = [x for x in (self.decision, self.proposal) if x is not None]
        said["arrays"] = (self.decision is not None) + 2 * (self.proposal is not None)
        text = json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()
        return b"\n".join((text, b"".join(x.astype(_NUMBER).tobytes() for x in arrays)))

    @classmethod
    def decode(cls, data: bytes) -> Note | None:
        """What bytes say; None where they say nothing that is known here."""
        text, _, numbers = data.partition(b"\n")
        try:
            said = json.loads(text)
            which = said.pop("arrays")
            flat = np.frombuffer(numbers, _NUMBER).astype(np.float64)
            parts = iter(np.split(flat, max(1, (which & 1) + (which >> 1))))
            decision = next(parts) if which & 1 else None
            return cls(decision, proposal=next(parts) if which & 2 else None, **said)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None


class Observed(NamedTuple):
    """A round that is over."""

    at: float
    cost: float | None
    violation: float | None
    note: Note


def note_from_one(note: str) -> str:
    """A note of a session in the numbers that requests have."""

    def more(found: re.Match[str]) -> str:
        return f"{found[1]}{', '.join(str(int(one) + 1) for one in found[2].split(', '))}"

    return _LISTED.sub(more, note)


@contextmanager
def counted_from_one() -> Iterator[None]:
    """Refusals of a session in the numbers that requests have: it counts rounds from 0."""
    try:
        yield
    except InvalidInput as error:
        said = _ROUND.sub(lambda found: f"{found[1]}{int(found[2]) + 1}", str(error))
        if said == str(error):
            raise
        raise type(error)(said) from None
