"""How Sphinx builds the site: ``make docs``. Nothing is fetched, neither here nor by a reader."""

import re
import sys
from pathlib import Path

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

import ccot

sys.path.insert(0, str(Path(__file__).parent))
import publish

project = "ccot"
author = "The ccot developers"
project_copyright = author
version = release = ccot.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "api/examples"]
templates_path = ["_templates"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autodoc_typehints = "none"  # the docstrings say it in words
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "api/examples",
    "doc_module": ("ccot",),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "ccot"
html_baseurl = publish.address()
html_math_renderer = "mathml"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_sidebars = {"faq": []}
html_context = {"default_mode": "auto"}
html_theme_options = {
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
}


def show_formula(translator, node) -> None:
    """Write a formula as MathML, which browsers draw by themselves: no script, no network."""
    # Docutils tells an opening bar from a closing one only if the source does.
    tex = re.sub(r"(?<!\\,)\\\|(.+?)\\\|", r"\\lVert \1 \\rVert ", node.astext())
    try:
        mathml = tex2mathml(tex, as_block=isinstance(node, nodes.math_block))
    except MathError as error:
        logging.getLogger(__name__).warning("formula: %s", error, location=node)
        mathml = translator.encode(node.astext())
    translator.body.append(with_norms(mathml))
    raise nodes.SkipNode


def with_norms(mathml: str) -> str:
    """Return a formula whose bars of norms stand close to what they enclose, and do not stretch."""
    n_open = 0

    def fence(bar: re.Match) -> str:
        nonlocal n_open
        opens = "mathopen" in bar[0]
        if not (opens or n_open):
            return bar[0]
        n_open += 1 if opens else -1
        form = "prefix" if opens else "postfix"
        return f'<mo form="{form}" stretchy="false" lspace="0" rspace="0">‖'

    return re.sub(r"<mo[^>]*>‖", fence, mathml)


def setup(app) -> None:
    """Tell Sphinx who writes formulas, and what a public site has beside its pages."""
    app.connect("html-page-context", publish.add_card)
    app.connect("build-finished", publish.finish)
    app.add_html_math_renderer("mathml", (show_formula, None), (show_formula, None))
