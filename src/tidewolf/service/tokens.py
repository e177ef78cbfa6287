"""Tokens and roles of callers, read from a file with one token per line.

    TOKEN                        may do everything
    ROLE TOKEN                   reader: looks; writer: everything
    ROLE PREFIX TOKEN            the same, for sessions whose names begin with PREFIX (* is all)
    ROLE PREFIX TOKEN NAME       the same, under this name in the audit log

Lines that begin with # are comments. Tokens are kept as their SHA-256 alone, and the one that comes
is compared with all of them, so that neither time nor memory says which one is near.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import re
import stat
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, cast, final

from tidewolf.core.errors import InvalidInput
from tidewolf.service.models import NAME

ROLES = ("reader", "writer")
_TOKEN = re.compile(r"[!-~]{1,1000}")


class Caller(NamedTuple):
    """The caller of a request: its name, its role, and the sessions it may use.

    Parameters
    ----------
    who : str, default "anonymous"
        The name of the token, for the audit.
    role : "reader" or "writer", default "writer"
        What they may do.
    prefix : str, default ""
        Of the names of the sessions that are there for them.
    """

    who: str = "anonymous"
    role: Literal["reader", "writer"] = "writer"
    prefix: str = ""


@final
class Tokens:
    """The tokens that are known; without any, every caller may do everything.

    Parameters
    ----------
    known : mapping of bytes to Caller
        The caller of each token, by its hash.

    Examples
    --------
    >>> from tidewolf.service.tokens import Tokens
    >>> tokens = Tokens.parse("reader lisbon- s3cret dashboard")
    >>> tokens.caller(b"Bearer s3cret")
    Caller(who='dashboard', role='reader', prefix='lisbon-')
    >>> tokens.caller(b"Bearer guess") is None
    True
    """

    def __init__(self, known: Mapping[bytes, Caller] | None = None) -> None:
        self._known = dict(known or {})

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Those of a file; a warning on stderr if others than its owner may read it.

        Raises
        ------
        InvalidInput
            If the file cannot be read, has a line that is none of the above, or no token.
        """
        path = Path(path)
        try:
            text, mode = path.read_text(encoding="utf-8"), path.stat().st_mode
        except OSError as error:
            raise InvalidInput(f"The tokens in {path} cannot be read: {error.strerror}.") from None
        except UnicodeDecodeError:
            raise InvalidInput(f"{path} is no text in UTF-8, and no file of tokens.") from None
        if stat.S_IMODE(mode) & 0o077:
            sys.stderr.write(
                f"Warning: others than its owner can reach {path}, and the tokens in it: "
                f"chmod 600 {path}.\n"
            )
        return cls.parse(text, str(path))

    @classmethod
    def parse(cls, text: str, source: str = "the file of tokens") -> Self:
        """Those of a text, as a file has them; errors begin with the source."""
        found, names = dict[bytes, Caller](), set[str]()
        for number, line in enumerate(text.splitlines(), start=1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            digest, caller = _token(words, f"{source}, line {number}", number)
            if digest in found or caller.who in names:
                raise InvalidInput(
                    f"{source}, line {number}: a token, or its name, is there twice."
                )
            found[digest] = caller
            names.add(caller.who)
        if not found:
            raise InvalidInput(
                f"{source} has no token: a line is TOKEN, or ROLE TOKEN, or ROLE PREFIX TOKEN NAME."
            )
        return cls(found)

    def __bool__(self) -> bool:
        return bool(self._known)

    def caller(self, authorization: bytes | None, *, basic: bool = False) -> Caller | None:
        """The caller that an Authorization header identifies; None if its token is not known.
        `basic`: "Basic ..." with the token as password is accepted, too.
        """
        if not self._known:
            return Caller()
        token = _brought(authorization, basic)
        if token is None:
            return None
        digest, found = sha256(token).digest(), None
        for known, caller in self._known.items():
            if hmac.compare_digest(known, digest):
                found = caller
        return found


def _token(words: list[str], where: str, number: int) -> tuple[bytes, Caller]:
    """The token of a line, never shown in an error."""
    given = ["writer", *words] if len(words) == 1 else words
    given = [given[0], "*", given[1]] if len(given) == 2 else given
    role, prefix, token, name = [*given, f"token-{number}"][:4]
    for fits, sentence in (
        (len(words) <= 4, "a line has at most ROLE PREFIX TOKEN NAME, and this has more words"),
        (role in ROLES, "a role is reader or writer, and comes first"),
        (token not in ROLES, "a role without a token"),
        (
            prefix == "*" or NAME.fullmatch(prefix),
            "a prefix is how names of sessions begin, or * for all",
        ),
        (_TOKEN.fullmatch(token), "a token is at most 1,000 printable characters of ASCII"),
        (NAME.fullmatch(name), "a name has at most 100 letters, digits, '.', '_' and '-'"),
    ):
        if not fits:
            raise InvalidInput(f"{where}: {sentence}.")
    caller = Caller(name, cast(Any, role), "" if prefix == "*" else prefix)
    return sha256(token.encode()).digest(), caller


def _brought(authorization: bytes | None, basic: bool) -> bytes | None:
    """The token of a header."""
    if authorization is None:
        return None
    scheme, _, given = authorization.partition(b" ")
    given = given.strip()
    if scheme.lower() == b"bearer":
        return given
    if not basic or scheme.lower() != b"basic":
        return None
    try:
        return base64.b64decode(given, validate=True).partition(b":")[2]
    except binascii.Error:
        return None
