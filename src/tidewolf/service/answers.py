"""What is sent back: a status, a body and the headers that make it safe to show.

Nothing of an answer is kept by browsers or by what stands in between, its kind is never guessed,
and a page may use what its policy names and nothing else, in no frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from starlette.types import Send

JSON = b"application/json"
PROBLEM = b"application/problem+json"
HTML = b"text/html; charset=utf-8"
TEXT = b"text/plain; charset=utf-8"

_SAFE = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)


class Answer(NamedTuple):
    """What a request is answered with.

    Parameters
    ----------
    status : int
        The status of HTTP.
    body : bytes
        What is sent.
    kind : bytes, default JSON
        Its media type.
    headers : tuple of pairs, default ()
        More headers.

    Examples
    --------
    >>> from tidewolf.service.answers import Answer
    >>> Answer(200, b"{}").kind
    b'application/json'
    """

    status: int
    body: bytes
    kind: bytes = JSON
    headers: tuple[tuple[bytes, bytes], ...] = ()

    async def send(self, send: Send) -> None:
        """Send it."""
        length = b"%d" % len(self.body)
        headers = [(b"content-type", self.kind), (b"content-length", length), *_SAFE, *self.headers]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


def page(html: str, policy: str) -> Answer:
    """A page.

    Parameters
    ----------
    html : str
        All of it.
    policy : str
        Its Content-Security-Policy: what it may load and run.

    Returns
    -------
    Answer
        With the headers that a page needs.

    Examples
    --------
    >>> from tidewolf.service.answers import page
    >>> page("<!doctype html>", "default-src 'none'").headers[0]
    (b'content-security-policy', b"default-src 'none'")
    """
    headers = ((b"content-security-policy", policy.encode()), (b"x-frame-options", b"DENY"))
    return Answer(200, html.encode("utf-8", "replace"), HTML, headers)
