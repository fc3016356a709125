"""Configuration of the documentation site.

    python -m sphinx -W -b html docs build/site

builds it without the network: pages in Markdown, the API from the docstrings, the gallery from
``examples/plot_*.py`` and the tables and figures of the benchmarks from their JSON files.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE / "_ext"), str(ROOT)]  # our extensions, and the package benchmarks

import cutplane  # noqa: E402

project = "cutplane"
author = "the cutplane developers"
copyright = f"2026, {author}"
version = release = cutplane.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "docstrings",
    "results",
]
exclude_patterns = ["_ext", "_static", "_templates", "images"]
templates_path = ["_templates"]
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(sklearn|numpy|scipy|dask)\..*")]  # their sites are elsewhere

# -- Markdown -----------------------------------------------------------------

myst_enable_extensions = ["dollarmath", "colon_fence", "attrs_block"]
myst_heading_anchors = 3  # the anchors that code hosts make, so that links work in both places
html_math_renderer = "mathml"

# -- API ----------------------------------------------------------------------

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say it in words
autodoc_member_order = "bysource"
maximum_signature_line_length = 80
numpydoc_show_class_members = False  # the template of a class lists them
numpydoc_xref_param_type = False

# -- gallery ------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"^(?!plot_)",  # of the name of a file
    "abort_on_example_error": True,
    "subsection_order": [
        *(f"../examples/{name}" for name in ("linear", "measures", "kernels", "structured")),
        "*",
    ],
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 1e9,  # times belong to the benchmarks
    "write_computation_times": False,
    "show_memory": False,
    "doc_module": ("cutplane",),
    "backreferences_dir": None,
    "reference_url": {},
}

# -- looks --------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "cutplane"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "cutplane"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
html_sidebars = {page: [] for page in ("index", "method", "extend", "contributing", "changes")}
toc_object_entries_show_parents = "hide"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
