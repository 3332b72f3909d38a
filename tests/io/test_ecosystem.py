"""Frames and annotated data in, labelled results out."""

import anndata
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV

from ccot import TransportCoclustering, load_model
from ccot.baselines import TwoSidedKMeans
from ccot.datasets import make_latent_blocks
from ccot.io.anndata import annotate, from_anndata

VALUES = make_latent_blocks([[1, 5, 9], [6, 1, 3]], 40, 30, sigma=0.3, random_state=0).data
ROWS, COLUMNS = [f"r{i}" for i in range(40)], [f"c{i}" for i in range(30)]


@pytest.fixture(scope="module")
def framed():
    return TransportCoclustering(n_init=2, random_state=0).fit(pd.DataFrame(VALUES, ROWS, COLUMNS))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_results_come_with_the_names_of_the_frame(framed, library, tmp_path):
    again = load_model(framed.save(tmp_path / "m.ccot"))
    for model in (framed, again):
        rows = model.to_frame(library=library)
        columns = model.to_frame("columns", library=library)
        assert type(rows).__module__.startswith(library)
        assert list(rows.columns) == ["name", "cluster", "confidence"]
        assert list(rows["name"]) == ROWS
        assert list(rows["cluster"]) == framed.row_labels_.tolist()
        assert list(columns["name"]) == COLUMNS
        assert list(columns["confidence"]) == framed.column_confidence_.tolist()


def test_polars_frames_have_columns_names_only():
    model = TransportCoclustering(n_init=2, random_state=0).fit(pl.DataFrame(VALUES, COLUMNS))
    assert list(model.to_frame("columns")["name"]) == COLUMNS
    assert list(model.to_frame()["name"]) == list(range(40))
    assert list(model.to_frame(names=ROWS)["name"]) == ROWS
    model.fit(VALUES)
    assert list(model.to_frame("columns")["name"]) == list(range(30))


def test_frames_that_cannot_be_made(framed, monkeypatch):
    with pytest.raises(ValueError, match='must be "rows" or "columns"'):
        framed.to_frame("cells")
    with pytest.raises(ValueError, match="2 names for 40 rows"):
        framed.to_frame(names=["a", "b"])
    with pytest.raises(ValueError, match="must be one of pandas, polars"):
        framed.to_frame(library="dask")
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    with pytest.raises(ImportError, match="pip install polars"):
        framed.to_frame(library="polars")


def test_row_names_go_with_the_next_fit(framed):
    model = TransportCoclustering(n_init=2, random_state=0).fit(pd.DataFrame(VALUES, ROWS, COLUMNS))
    assert hasattr(model, "row_names_in_")
    assert not hasattr(model.fit(VALUES), "row_names_in_")


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_annotated_data_get_their_clusters(kind):
    adata = anndata.AnnData(kind(VALUES), pd.DataFrame(index=ROWS), pd.DataFrame(index=COLUMNS))
    table = from_anndata(adata)
    assert (table.row_names, table.column_names) == (tuple(ROWS), tuple(COLUMNS))
    model = TransportCoclustering(2, 3, n_init=2, random_state=0).fit(table.values)
    annotate(adata, model, "blocks")
    assert adata.obs["blocks"].astype(int).tolist() == model.row_labels_.tolist()
    assert adata.var["blocks_confidence"].tolist() == model.column_confidence_.tolist()
    np.testing.assert_array_equal(adata.uns["blocks"]["block_means"], model.block_means_)
    with pytest.raises(ValueError, match="the model has 40 rows, the data 10"):
        annotate(adata[:10], model)
    annotate(adata, TwoSidedKMeans(2, 2, n_init=1, random_state=0).fit(VALUES), "rival")
    assert "rival_confidence" not in adata.obs


def test_annotated_data_survive_their_file(tmp_path):
    adata = anndata.AnnData(VALUES)
    annotate(adata, TransportCoclustering(2, 3, n_init=2, random_state=0).fit(VALUES))
    adata.write_h5ad(tmp_path / "a.h5ad")
    assert anndata.read_h5ad(tmp_path / "a.h5ad").obs["ccot"].nunique() == 2


def test_grid_searches_choose_numbers():
    """Held-out rows tell too few column clusters from enough."""
    search = GridSearchCV(
        TransportCoclustering(2, n_init=2, random_state=0), {"n_column_clusters": [1, 2, 3]}, cv=2
    ).fit(VALUES)
    assert search.best_params_ == {"n_column_clusters": 3}
    assert search.best_estimator_.n_column_clusters_ == 3


def test_notebooks_show_what_was_found(framed):
    bundle = framed._repr_mimebundle_()
    assert "40 rows in 2 clusters" in bundle["text/html"]
    assert "clusters" not in TransportCoclustering()._repr_mimebundle_()["text/plain"]
    assert "rows in" not in TransportCoclustering()._repr_mimebundle_()["text/html"]
