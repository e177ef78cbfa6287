"""The address of a PostgreSQL, postgresql://USER:PASSWORD@HOST:PORT/NAME, and never its password.

What is shown of an address has *** for the password, wherever it stands; so has what the driver
says of it. An address that cannot be read in one way only is refused: of a password with an @ or a
/ in it the driver would show the rest as the name of a host.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from tidewolf.core.errors import InvalidInput

SCHEMES = ("postgresql://", "postgres://")
_PASSWORD = re.compile(r"(?s)^(\w+://[^:@/?#]*):(.*)@")
_PARAMETER = re.compile(r"(?s)([?&](?:ssl)?password=)([^&]*)")


def is_address(where: object) -> bool:
    """Whether this is the address of a PostgreSQL, and no path.

    >>> is_address("postgresql://db.example/sessions"), is_address("sessions.db")
    (True, False)
    """
    return isinstance(where, str) and where.startswith(SCHEMES)


def without_password(url: str) -> str:
    """An address that can be shown.

    >>> without_password("postgresql://ada:secret@db.example/sessions")
    'postgresql://ada:***@db.example/sessions'
    """
    return _PARAMETER.sub(r"\1***", _PASSWORD.sub(r"\1:***@", url))


def hide_password(url: str, said: str) -> str:
    """What was said of this address, without its password.

    >>> hide_password("postgresql://ada:secret@db.example/sessions", "is it secret?")
    'is it ***?'
    """
    for word in [found[1] for found in (*_PASSWORD.findall(url), *_PARAMETER.findall(url))]:
        for written in filter(None, (word, unquote(word))):
            said = said.replace(written, "***")
    return said


def check_address(url: str) -> str:
    """The address; refused where a part of its password could be taken for something else.

    >>> check_address("postgresql://ada:s%40cret@db.example/sessions")
    'postgresql://ada:s%40cret@db.example/sessions'
    """
    if not is_address(url):
        raise InvalidInput(
            "This is no address of a PostgreSQL; give postgresql://USER:PASSWORD@HOST/DATABASE."
        )
    host = re.split("[/?#]", url.partition("://")[2], maxsplit=1)[0]
    if url.count("@") > 1 or ("@" in url and "@" not in host) or not url.isprintable():
        raise unreadable(url)
    return url


def unreadable(url: str) -> InvalidInput:
    """What an address that cannot be read is answered with."""
    return InvalidInput(
        f"{without_password(url)} cannot be read: give postgresql://USER:PASSWORD@HOST/DATABASE, "
        "and write what is no letter and no digit in a name or password as % and two digits, @ as "
        "%40 and / as %2F."
    )
