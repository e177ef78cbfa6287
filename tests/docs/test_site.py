"""The site: its reference lists every public name, its links lead somewhere, docstrings say in it
what they say in the source, and, built and opened from the disk, it asks no other host for
anything.
"""

import re
import shutil
import subprocess
import sys
import zlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from benchmarks.pages import find
from docutils.core import publish_doctree
from docutils.utils import Reporter
from hypothesis import given
from hypothesis import strategies as st
from tools import links, reference
from tools.docstring_markup import as_rst
from tools.public import PACKAGES, PARTS, aliases, parts, public

ROOT = Path(__file__).parents[2]
DOCS, pages = ROOT / "docs", cache(reference.pages)

# --- docstrings -----------------------------------------------------------------------------------

WORDS = ("|x", "y|", "|x - y|", "*shape", "a*b", "**kwargs", "weights_", "_own", "a_b", "\\n")
WORDS += ("`code`", "`x_`", "<a, b>", "n.", "(rounds,", "*row)", "x:", "``twice``", "|a|_b|")


def read(lines):
    """What a reader of the site sees; anything that docutils complains of fails."""
    strict = {"halt_level": Reporter.INFO_LEVEL, "report_level": 5}
    document = publish_doctree("\n".join(lines), settings_overrides=strict)
    return document.astext()


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=8))
def test_a_docstring_reads_on_the_site_as_in_the_source(words):
    text = "So " + " ".join(words)
    assert read(as_rst([text])) == text.replace("`", "")


# --- the reference --------------------------------------------------------------------------------


def test_the_index_has_every_package_and_no_two_pages_are_one_file():
    text = (DOCS / "reference" / "index.md").read_text()
    for package in (*PACKAGES, *PARTS):
        assert f"| [{package}](api/{package}.rst) | " in text
        assert f"\napi/{package}\n" in text
    assert len({name.lower() for name in pages()}) == len(pages()), "capitals do not count"
    assert ".. autoattribute:: names" in pages()["tidewolf.experts.Leader.rst"]


def test_every_command_and_every_option_is_on_the_page():
    from typer.main import get_command

    from tidewolf.cli.app import app

    text = pages()["commands.rst"]
    for name, command in get_command(app).commands.items():
        own = rf"\.\. _tidewolf-{name}:\n(.*?)(?=\n\.\. _tidewolf-|\Z)"
        (section,) = re.findall(own, text, re.DOTALL)
        for parameter in command.params:
            for option in parameter.opts if parameter.opts[0].startswith("-") else ():
                assert re.search(rf"(?<=[` ]){option}(?=[,` ])", section), f"{name} {option}"


# --- names and files as links ---------------------------------------------------------------------


# --- links ----------------------------------------------------------------------------------------

GOOD = {
    "index.html": '<a href="sub/a%20b.html#here">x</a><a href="#top"></a><p id="top">'
    '<link rel="stylesheet" href="_static/a.css?v=1"><a href="https://example.org">y</a>'
    '<img src="data:image/png;base64,AA"><link rel="canonical" href="https://example.org/">'
    '<script>const address = "https://example.org/x.js";</script>',
    "sub/a b.html": '<h1 id="here"></h1><img src="../pic.svg" srcset="../pic.svg 2x, ../pic.svg">',
    "_static/a.css": "/* url(https://example.org/f.woff) */ @font-face{src: url('f.woff2')}",
    "_static/f.woff2": "",
    "pic.svg": "",
}
FAULTS = {
    '<a href="nowhere.html">': "leads to no file.",
    '<a href="sub/a b.html#there">': "leads to a place that its page does not have.",
    '<a href="../out.html">': "leads out of the site.",
    '<a href="/a.html">': "begins at the root of a host, and a file has none.",
    '<img srcset="pic.svg 1x, no.png 2x">': "leads to no file.",
    **dict.fromkeys(
        [
            '<script src="//a.org/x"></script>',
            '<link rel="preload icon" href="https://a.org/x">',
            "<style>@import 'https://a.org/x';</style>",
            '<p style="background: url(https://a.org/x)">',
        ],
        "from another host.",
    ),
}


@pytest.mark.parametrize("text", FAULTS)
def test_every_fault_is_said_and_a_whole_site_has_none(text, tmp_path):
    assert links.main([str(tmp_path)]) == 1, "a folder without pages is no site"
    assert made(tmp_path, **GOOD) == []
    assert links.main([str(tmp_path)]) == 0
    (said,) = made(tmp_path, **GOOD | {"index.html": GOOD["index.html"] + text})
    assert said.startswith("index.html")
    assert said.endswith(FAULTS[text])
    assert links.main([str(tmp_path)]) == 1
    style = "a{b: url(gone.png)} @import url(https://a.org/x.css);"
    assert len(made(tmp_path, **GOOD | {"_static/a.css": style})) == 2


def made(folder, **files):
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return list(links.Site(folder).broken())


# --- pages of this repository ---------------------------------------------------------------------

MARKDOWN = sorted(DOCS.rglob("*.md"))


# --- tables in marked blocks ----------------------------------------------------------------------

BLOCK = r"<!-- begin ([\w-]+): (.*?) -->\n"
MARKED = [(page, *found) for page in MARKDOWN for found in re.findall(BLOCK, page.read_text())]


@pytest.mark.parametrize("block", MARKED, ids=lambda block: block[1])
def test_a_marked_block_has_a_table_and_a_command_that_exists(block):
    page, name, command = block
    body = find(page.read_text(), name)
    assert body
    assert body.startswith(("|", "```", "!["))
    module = re.match(r"python -m ([\w.]+)((?: [\w-]+)*)$", command)
    assert module is not None
    assert find_spec(module[1]) is not None
    if module[1] == "benchmarks":
        assert module[2].split()[0] in known_benchmarks()


def known_benchmarks():
    text = (ROOT / "benchmarks" / "__main__.py").read_text()
    (commands,) = re.findall(r"^COMMANDS = \{(.*)\}$", text, flags=re.MULTILINE)
    kinds = re.findall(r"^(?:SECTIONED|KINDS) = \((.*)\)$", text, flags=re.MULTILINE)
    return re.findall(r'"(\w+)": ', commands) + re.findall(r'"(\w+)"', ", ".join(kinds))


def test_every_benchmark_is_named_on_its_page():
    text = (DOCS / "benchmarks" / "index.md").read_text()
    assert known_benchmarks()
    assert [name for name in known_benchmarks() if f"`{name}`" not in text] == []


# --- the site, built ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Built as by `make docs` from what a clone has, but without running the gallery."""
    clone = tmp_path_factory.mktemp("clone")
    given = {"capture_output": True, "text": True}
    command = ["git", "ls-files", "-co", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, **given).stdout
    for name in filter(lambda name: (ROOT / name).is_file(), listed.splitlines()):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, clone / name)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-D", "plot_gallery=0"]
    command += ["-d", "out/doctrees", "docs", "out/docs"]
    done = subprocess.run(command, cwd=clone, check=False, **given)
    assert done.returncode == 0, done.stderr
    return clone / "out" / "docs"


@pytest.mark.soak
def test_no_link_of_the_site_is_broken_and_no_page_asks_another_host(site):
    assert list(links.Site(site).broken()) == []


@pytest.mark.soak
def test_every_public_name_has_its_anchor(site):
    packed, found = (site / "objects.inv").read_bytes().split(b"\n", 4)[4], {}
    for line in zlib.decompress(packed).decode().splitlines():
        name, _, _, address, _ = line.split(" ", 4)
        found[name] = address.removesuffix("$") + (name if address.endswith("$") else "")
    ids = {}
    for path in [*dict(public()), *aliases(), *dict(parts())]:
        page, _, anchor = found[path].partition("#")
        ids.setdefault(page, links.Page((site / page).read_text()).ids)
        assert anchor == path
        assert path in ids[page]
