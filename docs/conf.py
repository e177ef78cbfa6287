"""How the site is built: `make docs` writes out/docs, which opens from the disk without a network.

Pages are MyST Markdown by kind (start, how-to, reference, theory, benchmarks); `tools/reference.py`
writes one page for each public name, sphinx-gallery one for each story of `examples/`.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

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
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx-mathjax-offline",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_templates", "gallery/**/*.ipynb", "gallery/**/*.py", "gallery/**/*.md5"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = True
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
    "reference_url": {"tidewolf": None},
    "backreferences_dir": None,
}

html_theme = "pydata_sphinx_theme"
html_title = f"tidewolf {release}"
html_static_path = ["_static"]
html_copy_source = False
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "show_nav_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
