"""The gallery: every example runs, and says what its text promises."""

import runpy
import warnings
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
PROMISES = {
    "plot_cells": ["800 rows in 5 clusters", "adjusted Rand index: 1.00", "new cells: 1.00"],
    "plot_noise": ["sigma     9  TransportCoclustering  3 x 3 blocks"],
    "plot_ratings": ["500 rows in 4 clusters, 300 columns in 5 clusters", "offsets and blocks"],
    "plot_large_file": ["12000 rows in 4 clusters, 50 columns in 3 clusters", "sure of their"],
    "plot_markers": ["6 clusters of cells", "doublets told from others"],
    "plot_parameters": ["max_depth", "fit_intercept"],
    "plot_penguins": ["344 rows in 6 clusters", "adjusted Rand index with both: 0.8"],
    "plot_reasons": ["3 groups of readers, 4 of books", "new reader: poetry"],
    "plot_votes": ["435 rows in 2 clusters", "no physician fee freeze", "votes with the others"],
    "plot_text": ["family poisson", "from linear_model", "NMI with the subpackages"],
    "plot_expression": ["120 rows in 3 clusters", "adjusted Rand index: 1.00"],
}


def test_every_example_is_tested():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(PROMISES)


@pytest.mark.parametrize("name", PROMISES)
def test_example(name, monkeypatch, capsys):
    if name == "plot_cells":
        pytest.importorskip("anndata")
    matplotlib = pytest.importorskip("matplotlib")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.setattr(pyplot, "show", lambda: None)
    before = matplotlib.get_backend()
    matplotlib.use("Agg")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        assert pyplot.get_fignums()
    finally:
        pyplot.close("all")
        matplotlib.use(before)
    printed = capsys.readouterr().out
    for promise in PROMISES[name]:
        assert promise in printed
