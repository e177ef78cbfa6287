"""How the site is built: `make docs` writes out/docs, which opens from the disk without a network.

Pages are MyST Markdown by kind (start, how-to, reference, theory, benchmarks); `tools/reference.py`
writes one page for each public name and one of the commands, sphinx-gallery one for each story of
`examples/`. Docstrings are read as they stand (`tools/docstring_markup.py`); names and files that
pages mention are links (`tools/name_links.py`, `tools/source_pages.py`).
"""

from __future__ import annotations

import inspect
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]  # this tree, whatever else is installed

from tools import reference  # noqa: E402

import tidewolf  # noqa: E402

reference.write(HERE / "reference" / "api")  # before Sphinx looks which pages there are

project = "tidewolf"
author = "The tidewolf developers"
copyright = "the tidewolf developers"
version = release = tidewolf.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "tools.docstring_markup",
    "tools.members",
    "tools.name_links",
    "tools.source_pages",
]
exclude_patterns = ["gallery/**/*.ipynb", "gallery/**/*.py", "gallery/**/*.md5"]
suppress_warnings = ["config.cache", "misc.highlighting_failure"]
"""sphinx_gallery_conf holds functions; sessions of a shell hold JSON over several lines."""
smartquotes = False  # a prime is a prime
default_role = "literal"
toc_object_entries_show_parents = "hide"

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"__init__|notebooks",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,  # their page loads scripts from other hosts
    "reference_url": {"tidewolf": None},
    "backreferences_dir": None,
    "capture_repr": ("_repr_html_",),  # no <matplotlib.legend.Legend object at ...>
}

html_theme = "pydata_sphinx_theme"
html_title = f"tidewolf {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False  # a page from the disk may not fetch others
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"image_light": "_static/wordmark.svg", "image_dark": "_static/wordmark-dark.svg"},
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 7,
    "show_nav_level": 1,
    "navigation_with_keys": False,
    "secondary_sidebar_items": {  # the gallery has none, so that its code fits the column
        "[!g]**": ["page-toc"],
        "g[!a]**": ["page-toc"],
        "gallery/**": [],
    },
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "default",
    "pygments_dark_style": "github-dark",
}
html_sidebars = {"index": [], "changelog": [], "source/**": []}

mathjax_path = "mathjax/tex-chtml.js"
mathjax3_config = {"options": {"enableMenu": False}}
"""The menu would load more files, of other output formats and for speech."""


def finish_files(app: Any, failed: Exception | None) -> None:
    """The two parts of MathJax that pages load, the program and its fonts; and away with what the
    theme's own developers need.
    """
    spec = find_spec("sphinx-mathjax-offline")
    if failed is None and spec is not None and spec.origin is not None:
        there = Path(spec.origin).parent / "static" / "mathjax"
        here = Path(app.outdir) / "_static" / "mathjax"
        for part in (Path("tex-chtml.js"), *_files(there, "output/chtml/fonts/woff-v2")):
            (here / part).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(there / part, here / part)
        for spare in ("webpack-macros.html", "scripts/*.map", "styles/*.map"):
            for file in (Path(app.outdir) / "_static").glob(spare):
                file.unlink()


def _files(folder: Path, below: str) -> list[Path]:
    return [file.relative_to(folder) for file in (folder / below).iterdir()]


def setup(app: Any) -> None:
    # autodoc would show that of __new__, (*_, **__)
    tidewolf.OnlineAllocator.__signature__ = inspect.signature(tidewolf.OnlineAllocator)
    app.connect("build-finished", finish_files)
