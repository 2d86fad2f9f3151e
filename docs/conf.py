"""Sphinx configuration: `make docs` builds the site into docs/_build/html."""

import subprocess
import sys
from pathlib import Path

import prudent
from prudent import __version__

project = "prudent"
author = "the prudent developers"
copyright = "2026, the prudent developers"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # formulas render without a network
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_design",
    "sphinx_copybutton",
]
templates_path = ["_templates"]
# The galleries are read where sphinx-gallery writes them.
exclude_patterns = ["_build", "examples", "tutorials", "sg_execution_times.rst"]
autosummary_generate = True
# A name that leads nowhere is an error, except names of packages documented elsewhere.
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"sklearn\..*")]
numpydoc_show_class_members = False
# Types stand in the docstrings; signatures show names and defaults.
autodoc_typehints = "none"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def reset_look(gallery_conf, script):
    """Give every script of the gallery the look of displays and reports."""
    import matplotlib.style

    from prudent.plots.display import STYLE_FILE

    matplotlib.style.use(STYLE_FILE)


def setup(app):
    """Write the report that the start page opens, unless it is newer than the code."""
    package = Path(prudent.__file__).parent
    report = Path(app.confdir) / "_build" / "live" / "report.html"
    newest = max(file.stat().st_mtime for file in package.rglob("*.*"))
    if report.exists() and report.stat().st_mtime > newest:
        return
    report.parent.mkdir(parents=True, exist_ok=True)
    asked = ("breast_cancer", "--promise", "error <= 5%")
    methods = ("--methods", "minimax,calibrated", "--quiet")
    command = (*("-m", "prudent", "compare", *asked, *methods), "--report", str(report))
    subprocess.run((sys.executable, *command), check=True, stdout=subprocess.DEVNULL)


# The function above cannot be kept between builds, and need not be.
suppress_warnings = ["config.cache"]

sphinx_gallery_conf = {
    "reset_modules": ("matplotlib", "seaborn", reset_look),
    "examples_dirs": ["tutorials", "examples"],
    "gallery_dirs": ["gallery/tutorials", "gallery/examples"],
    "filename_pattern": r".*\.py",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "abort_on_example_error": True,
    "backreferences_dir": None,
    "capture_repr": (),
}

html_theme = "pydata_sphinx_theme"
html_title = "prudent"
html_show_sourcelink = False
html_static_path = ["_static"]
html_extra_path = ["_build/live"]  # the report that the start page opens
html_css_files = ["prudent.css"]
html_sidebars = {"index": [], "getting_started": []}
toc_object_entries_show_parents = "hide"
html_theme_options = {
    "show_prev_next": False,
    "navbar_align": "left",
    "show_toc_level": 2,
    "secondary_sidebar_items": {
        "**": ["page-toc"],
        # Prints a table of a hundred columns.
        "gallery/tutorials/plot_promise_in_production": [],
    },
    "footer_start": ["copyright"],
    "footer_end": [],
}
