"""The suite of methods that find their own number."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

from ccot.cli import app
from ccot.datasets import make_latent_blocks
from ccot.experiments.bench.automatic import automatic_rivals, labelled_cases, mean_scores
from ccot.experiments.bench.rivals import Job

# HDBSCAN leaves rows out, and sparsebm sees which entries there are only.
SURE = [
    name
    for name, rival in automatic_rivals().items()
    if rival.version is not None and name not in ("HDBSCAN", "sparsebm, ICL")
]


@pytest.fixture(scope="module")
def blocks():
    return make_latent_blocks([[9, 1, 1], [1, 9, 1], [1, 1, 9]], 60, 45, sigma=0.5, random_state=0)


@pytest.mark.parametrize("name", SURE)
@pytest.mark.parametrize("shape", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_everybody_finds_clear_blocks(name, shape, blocks):
    matrix = shape(np.maximum(blocks.data, 0))
    labels, _ = automatic_rivals()[name].fit(Job(matrix, (3, 0), 0))
    assert len(labels) == 60
    # No cluster holds rows of two blocks.
    assert len({(a, b) for a, b in zip(labels, blocks.row_labels, strict=True)}) == len(set(labels))


def test_rows_of_zeros_are_set_aside(blocks):
    matrix = np.maximum(blocks.data, 0)
    matrix[7] = 0
    for name in ("SpectralCoclustering, eigengap", "tau objective"):
        labels, _ = automatic_rivals()[name].fit(Job(matrix, (3, 0), 0))
        assert (labels == labels[7]).sum() == 1


def test_a_folder_is_compared(tmp_path, monkeypatch, blocks):
    folder = tmp_path / "data" / "planted"
    folder.mkdir(parents=True)
    np.savez(folder / "dense.npz", X=blocks.data, row_labels=blocks.row_labels)
    np.savez(folder / "unknown.npz", X=blocks.data)
    monkeypatch.chdir(tmp_path)
    asked = ["--rival", "TransportCoclustering", "--rival", "HDBSCAN"]
    result = CliRunner().invoke(
        app, ["bench", "--suite", "automatic", "--data", "data", "--out", "out.json", *asked]
    )
    assert result.exit_code == 0, result.output
    assert "planted" in result.output
    stored = json.loads((tmp_path / "out.json").read_text())
    assert [case["name"] for case in stored["cases"]] == ["dense"]
    assert {trial["status"] for trial in stored["trials"]} == {"done"}
    scores = dict(mean_scores(stored))["TransportCoclustering"]["planted"]
    assert scores["nmi"] == scores["ari"] == 1.0


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(ValueError, match="row_labels"):
        labelled_cases(tmp_path)
