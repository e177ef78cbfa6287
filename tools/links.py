"""Every link inside the site leads somewhere, and no page asks another host for anything:

    python -m tools.links out/docs

walks all pages. A link (href, src, srcset, and url() in style sheets) to a file of the site must
find it, and one to a #fragment an element with that id. What a page loads by itself, scripts,
styles, fonts, pictures, frames, must be a file of the site or stand in the page; links that a
reader has to click may lead anywhere.
"""

import posixpath
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = ("src", "srcset", "href", "xlink:href", "data", "poster")
"""Attributes whose address a browser fetches without being asked, but in links to follow."""
ONLY_SAID = frozenset(("alternate", "author", "canonical", "help", "license", "next", "prev"))
"""What a <link> may be to another page without loading it."""
_STYLE_ADDRESS = re.compile(r"""(?:url\(\s*|@import\s+(?!url\())["']?([^"')\s;]+)""")
_COMMENT = re.compile(r"/\*.*?\*/", flags=re.DOTALL)


class Page(HTMLParser):
    """What a page has: ids to lead to, links to follow, and addresses that it loads."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self._style = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if given.get(name)}
        is_said = tag == "link" and set(given.get("rel", "").lower().split()) <= ONLY_SAID
        for name in filter(given.__contains__, LOADS):
            found = _sources(given[name]) if name == "srcset" else [given[name]]
            (self.links if is_said or tag in ("a", "area") else self.loads).extend(found)
        self.loads += addresses_in_style(given.get("style", ""))
        self._style = tag == "style"

    def handle_data(self, data: str) -> None:
        if self._style:
            self.loads += addresses_in_style(data)

    def handle_endtag(self, tag: str) -> None:
        self._style = False


def addresses_in_style(text: str) -> list[str]:
    """What a style sheet loads."""
    return _STYLE_ADDRESS.findall(_COMMENT.sub("", text))


class Site:
    """The files below a folder, by their paths from there, and the pages among them."""

    def __init__(self, folder: Path) -> None:
        files = (file for file in folder.rglob("*") if file.is_file())
        self.files = {file.relative_to(folder).as_posix(): file for file in files}
        self.pages = {
            name: Page(file.read_text(encoding="utf-8"))
            for name, file in sorted(self.files.items())
            if name.endswith(".html")
        }

    def broken(self) -> Iterator[str]:
        """A sentence for each link that leads nowhere and for each address of another host that is
        loaded.
        """
        for name, page in self.pages.items():
            yield from self._faults(name, page.links, page.loads)
        for name, file in sorted(self.files.items()):
            if name.endswith(".css"):
                yield from self._faults(
                    name, [], addresses_in_style(file.read_text(encoding="utf-8"))
                )

    def _faults(self, name: str, links: list[str], loads: list[str]) -> Iterator[str]:
        for address in dict.fromkeys(loads):
            if _is_elsewhere(address):
                yield f"{name} loads {address} from another host."
        for address in dict.fromkeys((*links, *loads)):
            if not _is_elsewhere(address) and (why := self._missing(address, name)):
                yield f"{name}: {address} {why}."

    def _missing(self, address: str, name: str) -> str:
        """Why an address of the site leads nowhere; empty where it leads somewhere."""
        parts = urlsplit(address)
        if parts.scheme:  # data:, mailto:, javascript:
            return ""
        path, fragment = unquote(parts.path), unquote(parts.fragment)
        if path.startswith("/"):
            return "begins at the root of a host, and a file has none"
        there = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
        if there.startswith(".."):
            return "leads out of the site"
        if there not in self.files:
            return "leads to no file"
        if fragment and there in self.pages and fragment not in self.pages[there].ids:
            return "leads to a place that its page does not have"
        return ""


def _is_elsewhere(address: str) -> bool:
    return address.startswith("//") or urlsplit(address).scheme in ("http", "https", "ftp", "ws")


def _sources(text: str) -> list[str]:
    """The addresses of a srcset."""
    return [each.split()[0] for each in text.split(",") if each.strip()]


def main(arguments: list[str]) -> int:
    """Say what is broken; 1 where anything is, or where there is no page."""
    site = Site(Path(arguments[0]))
    found = list(site.broken())
    for sentence in found:
        print(sentence)
    print(f"{len(site.pages)} pages, {len(found)} broken links.")
    return 1 if found or not site.pages else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
