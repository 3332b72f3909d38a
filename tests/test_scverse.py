"""Annotated data in scanpy's manner; scanpy itself is asked where it is installed."""

import os
import sys
from copy import copy
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.metrics import normalized_mutual_info_score
from sklearn.utils.fixes import parse_version

from ccot import TransportCoclustering
from ccot.io.matrix import InputError
from ccot.sources import ArraySource, BackedSource, FunctionSource, as_source, is_source

anndata = pytest.importorskip("anndata")
from ccot.scverse import pl, tl  # noqa: E402
from ccot.scverse.counts import find_counts  # noqa: E402

KIND = np.arange(150) % 3


def simulated_counts(seed=0):
    rng = np.random.default_rng(seed)
    means = np.full((3, 4), 0.4)
    means[[0, 1, 2], [0, 1, 2]] = 3.0
    depth = rng.lognormal(0, 0.3, size=(150, 1))
    return rng.poisson(depth * means[KIND].repeat(20, axis=1)).astype(np.float32)


def annotated():
    made = anndata.AnnData(sp.csr_matrix(simulated_counts()))
    made.obs_names = [f"cell{i}" for i in range(made.n_obs)]
    made.var_names = [f"gene{j}" for j in range(made.n_vars)]
    return made


@pytest.fixture(scope="module")
def fitted():
    made = annotated()
    return made, tl.cocluster(made, return_model=True, quiet=True)


@pytest.fixture
def adata():
    return annotated()


@pytest.fixture
def clustered(fitted):
    return fitted[0].copy()


def test_labels_are_those_of_the_estimator(adata, capsys):
    model = TransportCoclustering(random_state=0).fit(adata.X)
    assert tl.cocluster(adata) is None
    assert capsys.readouterr().out == "ccot: counts of X\n"
    np.testing.assert_array_equal(adata.obs["ccot"].astype(int), model.row_labels_)
    np.testing.assert_array_equal(adata.var["ccot_genes"].astype(int), model.column_labels_)
    np.testing.assert_array_equal(adata.obs["ccot_confidence"], model.row_confidence_)
    np.testing.assert_array_equal(adata.var["ccot_genes_confidence"], model.column_confidence_)
    assert normalized_mutual_info_score(KIND, adata.obs["ccot"]) == 1
    facts = adata.uns["ccot"]
    assert (facts["family"], facts["source"], facts["are_counts"]) == ("poisson", "X", True)
    assert facts["params"]["criterion"] == model.criterion
    np.testing.assert_array_equal(facts["block_means"], model.block_means_)


def test_rng_is_another_name_of_random_state(adata):
    given = {"return_model": True, "quiet": True, "n_init": 1}
    one = tl.cocluster(adata, rng=3, **given)
    other = tl.cocluster(adata, random_state=np.random.default_rng(3), **given)
    np.testing.assert_array_equal(one.row_labels_, other.row_labels_)
    with pytest.raises(TypeError, match="pass one of them"):
        tl.cocluster(adata, random_state=1, rng=3, quiet=True)


def test_a_copy_leaves_the_data_alone(adata, capsys):
    added = tl.cocluster(adata, key_added="blocks", copy=True, quiet=True, n_row_clusters=2)
    assert capsys.readouterr().out == ""
    assert not adata.uns
    assert "blocks" not in adata.obs
    assert added.obs["blocks"].nunique() == 2
    with pytest.raises(ValueError, match="exclude each other"):
        tl.cocluster(adata, copy=True, return_model=True)


def test_views_keep_the_colours_of_their_clusters(clustered):
    clusters = clustered.obs["ccot"].cat.categories
    colours = clustered.uns["ccot_colors"]
    assert len(set(colours)) == len(clusters)
    assert len(clustered.uns["ccot_genes_colors"]) == clustered.var["ccot_genes"].nunique()
    assert len(clusters) != clustered.var["ccot_genes"].nunique()
    last = clustered[clustered.obs["ccot"] == clusters[-1]]
    assert last.uns["ccot_colors"].tolist() == [colours[-1]]


def test_a_view_becomes_a_copy(adata, fitted):
    view = adata[:120]
    with pytest.warns(anndata.ImplicitModificationWarning, match="view"):
        tl.cocluster(view, quiet=True)
    assert not view.is_view
    assert {"ccot", "ccot_confidence"} <= set(view.obs)
    assert {"ccot_genes", "ccot_genes_confidence"} <= set(view.var)
    assert "ccot" not in adata.obs
    view = adata[:120]
    with pytest.warns(anndata.ImplicitModificationWarning, match="view"):
        tl.predict(fitted[1], view, quiet=True)
    assert (view.obs["ccot"] == fitted[0].obs["ccot"][:120]).all()


def test_many_clusters_are_in_order_and_differ_in_colour(adata):
    tl.cocluster(adata, n_row_clusters=12, n_column_clusters=30, n_init=1, quiet=True)
    found = adata.obs["ccot"].cat.categories.astype(int)
    assert list(found) == sorted(found)
    assert len(found) > 10
    for key in ("ccot_colors", "ccot_genes_colors"):
        assert len(set(adata.uns[key])) == len(adata.uns[key])


def fixed(value):
    """Return an attribute that a fit cannot change."""
    return property(lambda self: value, lambda self, _: None)


def test_reproducibility_is_written_where_the_model_has_it(clustered, monkeypatch):
    shares = np.linspace(0, 1, clustered.n_obs)
    told = SimpleNamespace(row=SimpleNamespace(points=shares), column=None)
    monkeypatch.setattr(TransportCoclustering, "reproducibility_", fixed(told), raising=False)
    tl.cocluster(clustered, quiet=True)
    np.testing.assert_array_equal(clustered.obs["ccot_reproducibility"], shares)
    assert "ccot_genes_reproducibility" not in clustered.var
    nothing = SimpleNamespace(row=None, column=None)
    monkeypatch.setattr(TransportCoclustering, "reproducibility_", fixed(nothing))
    tl.cocluster(clustered, quiet=True)
    assert "ccot_reproducibility" not in clustered.obs


def test_the_matrix_is_left_as_it_was(adata):
    turned = anndata.AnnData(adata.X[:, ::-1])
    assert not turned.X.has_sorted_indices
    before = turned.X.toarray()
    find_counts(turned)
    np.testing.assert_array_equal(turned.X.toarray(), before)


# Where the counts are ------------------------------------------------------------------------


def logs(adata):
    return sp.csr_matrix(adata.X.log1p())


def test_counts_are_found(adata):
    assert find_counts(adata).where == "X"
    counts = adata.X.copy()
    adata.raw = adata
    adata.X = logs(adata)
    found = find_counts(adata)
    assert (found.where, found.are_counts) == ("raw", True)
    adata.layers["counts"] = counts
    assert find_counts(adata).where == "layers/counts"
    assert find_counts(adata, "raw").where == "raw"
    assert not find_counts(adata, "X").are_counts
    assert find_counts(adata, "X").describe() == (
        "ccot: values of X unchanged (they are not counts)"
    )


def test_counts_in_x_are_preferred_to_logarithms_in_raw(adata):
    logged = adata.copy()
    logged.X = logs(adata)
    adata.raw = logged
    assert find_counts(adata).where == "X"
    # The old tutorials: logarithms in raw, scaled values in X.
    adata.X = (logged.X - logged.X.mean(axis=0)).A1.reshape(adata.shape)
    assert find_counts(adata).where == "raw"
    adata.raw = None
    assert find_counts(adata).where == "X"


def test_of_raw_the_genes_of_the_data_are_taken(adata):
    few = adata[:, 10:].copy()
    few.raw = adata
    few.X = logs(few)
    model = tl.cocluster(few, return_model=True, quiet=True)
    np.testing.assert_array_equal(
        model.row_labels_, TransportCoclustering(random_state=0).fit(adata.X[:, 10:]).row_labels_
    )
    assert few.uns["ccot"]["source"] == "raw"


def test_what_cannot_be_found(adata):
    with pytest.raises(InputError, match="there is no layer 'spliced': none at all"):
        tl.cocluster(adata, "spliced")
    with pytest.raises(InputError, match="adata has no raw"):
        tl.cocluster(adata, "raw")
    adata.var_names = ["same"] * adata.n_vars
    with pytest.raises(InputError, match=r"call adata\.var_names_make_unique\(\)"):
        tl.cocluster(adata)


# New cells -----------------------------------------------------------------------------------


def test_new_cells_are_placed_by_the_names_of_genes(fitted, capsys):
    adata, model = fitted
    new = anndata.AnnData(sp.csr_matrix(simulated_counts(1)))
    new.var_names = adata.var_names
    expected = model.predict(as_source(new.X))
    shuffled = new[:, np.random.default_rng(0).permutation(new.n_vars)].copy()
    tl.predict(model, shuffled)
    assert "80 of 80 genes" in capsys.readouterr().out
    np.testing.assert_array_equal(shuffled.obs["ccot"].astype(int), expected)
    assert shuffled.obs["ccot"].cat.categories.equals(adata.obs["ccot"].cat.categories)
    assert shuffled.uns["ccot_colors"].tolist() == adata.uns["ccot_colors"].tolist()


@pytest.mark.parametrize("dense", [False, True])
def test_missing_genes_are_an_error_or_zero(fitted, dense, capsys):
    adata, model = fitted
    new = adata[:, 5:][:, ::-1].copy()
    new.X = new.X.toarray() if dense else new.X
    with pytest.raises(InputError, match=r"5 of 80 genes are not in X \(the first: 'gene0'\)"):
        tl.predict(model, new)
    placed = tl.predict(model, new, missing="zero", copy=True)
    assert "75 of 80 genes of the model found" in capsys.readouterr().out
    emptied = adata.X.toarray()
    emptied[:, :5] = 0
    expected = model.predict(ArraySource(emptied))
    np.testing.assert_array_equal(placed.obs["ccot"].astype(int), expected)
    new.var_names = [f"other{j}" for j in range(new.n_vars)]
    with pytest.raises(InputError, match="none of the 80 genes"):
        tl.predict(model, new, missing="zero")
    with pytest.raises(ValueError, match='must be "error" or "zero"'):
        tl.predict(model, new, missing="drop")
    nameless = copy(model)
    del nameless.feature_names_in_
    with pytest.raises(ValueError, match="has no names of genes"):
        tl.predict(nameless, new)


# Genes of a cluster --------------------------------------------------------------------------


def test_markers_are_the_genes_that_were_made_so(clustered):
    found = tl.marker_genes(clustered, n_genes=20)
    assert list(found.columns) == [
        "group",
        "names",
        "scores",
        "logfoldchanges",
        "pct_nz_group",
        "pct_nz_reference",
        "gene_cluster",
    ]
    for cluster, rows in found.groupby("group", observed=True):
        kind = KIND[clustered.obs["ccot"] == cluster][0]
        assert set(rows["names"]) == {f"gene{j}" for j in range(20 * kind, 20 * kind + 20)}
        assert rows["gene_cluster"].nunique() == 1
        assert (rows["logfoldchanges"] > 1).all()
        assert (rows["pct_nz_group"] > rows["pct_nz_reference"]).all()
        blocks = clustered.uns["ccot_markers"]["gene_clusters"].query("group == @cluster")
        assert blocks["names"].iloc[0] == rows["gene_cluster"].iloc[0]
        assert blocks["logfoldchanges"].is_monotonic_decreasing


def test_shares_and_effects_by_hand():
    counts = np.array([[8, 0, 2], [4, 4, 2], [0, 8, 2], [0, 9, 1]], dtype=np.float32)
    adata = anndata.AnnData(counts)
    adata.obs["kind"] = pd.Categorical(["a", "a", "b", None])
    found = tl.marker_genes(adata, "kind").set_index(["group", "names"]).loc["a"]
    logged = np.log1p(counts * 1000)
    inside, outside = logged[:2].mean(axis=0), logged[2]
    expected = np.log2((np.expm1(inside) + 1e-9) / (np.expm1(outside) + 1e-9))
    np.testing.assert_allclose(found.loc[list("012"), "logfoldchanges"], expected, atol=1e-6)
    np.testing.assert_allclose(found.loc[list("012"), "pct_nz_group"], [1, 0.5, 1])
    np.testing.assert_allclose(found.loc[list("012"), "pct_nz_reference"], [0, 1, 1])
    adata.obs["kind"] = "a"
    with pytest.raises(ValueError, match="has one cluster"):
        tl.marker_genes(adata, "kind")
    with pytest.raises(ValueError, match=r"call tl\.cocluster first"):
        tl.marker_genes(adata)


# Files ---------------------------------------------------------------------------------------


def needs_format(suffix):
    package = pytest.importorskip("h5py" if suffix == ".h5ad" else "zarr")
    if is_before("anndata", "0.10.8"):
        pytest.skip("anndata reads and writes with NumPy 2 since 0.10.8")
    if suffix == ".zarr" and is_before("anndata", "0.12") and not is_before("zarr", "3"):
        pytest.skip("anndata knows zarr 3 since 0.12")
    return package


def is_before(package, version):
    return parse_version(metadata.version(package)) < parse_version(version)


def write(adata, path):
    getattr(adata, "write_h5ad" if path.suffix == ".h5ad" else "write_zarr")(path)
    return anndata.read_h5ad(path) if path.suffix == ".h5ad" else anndata.read_zarr(path)


@pytest.mark.parametrize("suffix", [".h5ad", ".zarr"])
def test_everything_survives_a_file(clustered, suffix, tmp_path):
    needs_format(suffix)
    markers = tl.marker_genes(clustered)
    again = write(clustered, tmp_path / f"cells{suffix}")
    pd.testing.assert_frame_equal(again.obs, clustered.obs)
    pd.testing.assert_frame_equal(again.var, clustered.var)
    assert list(again.uns["ccot_colors"]) == list(clustered.uns["ccot_colors"])
    for name, fact in clustered.uns["ccot"].items():
        np.testing.assert_equal(again.uns["ccot"][name], fact)
    assert pl.top_genes(again) == pl.top_genes(clustered)
    pd.testing.assert_frame_equal(tl.marker_genes(again), markers)


@pytest.mark.parametrize("dense", [False, True])
def test_backed_cells_are_read_row_by_row(adata, dense, tmp_path):
    needs_format(".h5ad")
    adata.X = adata.X.toarray() if dense else adata.X
    expected = tl.cocluster(adata, return_model=True, quiet=True)
    markers = tl.marker_genes(adata)
    adata[:, ::-1].copy().write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    assert is_source(backed.X)
    assert isinstance(find_counts(backed).values, BackedSource)
    tl.predict(expected, backed, key_added="placed", quiet=True)
    np.testing.assert_array_equal(
        backed.obs["placed"].astype(int), expected.predict(as_source(adata.X))
    )
    tl.cocluster(backed, quiet=True)
    assert normalized_mutual_info_score(backed.obs["ccot"], adata.obs["ccot"]) == 1
    backed.obs["ccot"] = adata.obs["ccot"]
    again = tl.marker_genes(backed, n_genes=5)
    first = markers.groupby("group", observed=True).head(5)
    np.testing.assert_allclose(again["scores"], first["scores"])
    backed.file.close()


def test_parts_of_a_backed_matrix_and_a_sample_of_its_rows(adata, tmp_path, monkeypatch):
    h5py = needs_format(".h5ad")
    monkeypatch.setattr("ccot.sources.base.PART_CELLS", 2**10)
    monkeypatch.setattr("ccot.sources.files._MOST_ROWS", 2**6)
    monkeypatch.setattr("ccot.blocks.streaming.POOL_ENTRIES", 2**10)
    monkeypatch.setattr("ccot.blocks.streaming.POOL_ROWS", 60)
    adata.raw = adata
    adata.X = logs(adata)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    counts = find_counts(backed)
    assert counts.where == "raw"
    assert len(counts.values.parts) > 5
    np.testing.assert_array_equal(
        counts.values.rows(np.array([0, 70, 149])).toarray(), adata.raw.X[[0, 70, 149]].toarray()
    )
    tl.cocluster(backed, quiet=True, n_row_clusters=3)
    assert normalized_mutual_info_score(KIND, backed.obs["ccot"]) == 1
    backed.file.close()
    with h5py.File(tmp_path / "cells.h5ad") as file:
        assert not is_source(file["obs"])


def test_a_dask_array_behind_annotated_data_is_swept_block_by_block(adata, monkeypatch):
    da = pytest.importorskip("dask.array")
    monkeypatch.setattr("ccot.blocks.streaming.POOL_ENTRIES", 1)
    monkeypatch.setattr("ccot.blocks.streaming.POOL_ROWS", 60)
    options = {"n_row_clusters": 3, "random_state": 0, "max_passes": None}
    blocks = FunctionSource(lambda first, last: adata.X[first:last], adata.shape, 40)
    expected = TransportCoclustering(**options).fit(blocks)
    lazy = anndata.AnnData(da.from_array(adata.X, chunks=(40, -1)), adata.obs, adata.var)
    model = TransportCoclustering(**options).fit(lazy)
    np.testing.assert_array_equal(model.row_labels_, expected.row_labels_)
    np.testing.assert_array_equal(model.feature_names_in_, adata.var_names)
    np.testing.assert_array_equal(model.predict(lazy), model.row_labels_)
    np.testing.assert_array_equal(model.predict(adata), model.row_labels_)
    tl.cocluster(lazy, quiet=True, **options)
    np.testing.assert_array_equal(lazy.obs["ccot"].astype(int), model.row_labels_)
    assert normalized_mutual_info_score(KIND, lazy.obs["ccot"]) == 1


def test_what_is_stored_by_columns_is_read_as_a_whole(adata, tmp_path):
    needs_format(".h5ad")
    adata.X = adata.X.tocsc()
    adata.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    with pytest.warns(UserWarning, match="stored by columns"):
        source = as_source(backed.X)
    np.testing.assert_array_equal(source.array.toarray(), adata.X.toarray())
    backed.file.close()


def test_sparse_zarr_is_read_row_by_row(adata, clustered, tmp_path):
    zarr = needs_format(".zarr")
    open_sparse = getattr(anndata.io if hasattr(anndata, "io") else None, "sparse_dataset", None)
    if open_sparse is None:
        pytest.skip("this anndata has no anndata.io.sparse_dataset")
    write(adata, tmp_path / "cells.zarr")
    group = zarr.open(tmp_path / "cells.zarr", mode="r")
    lazy = anndata.AnnData(open_sparse(group["X"]), obs=adata.obs.copy(), var=adata.var.copy())
    assert isinstance(find_counts(lazy).values, BackedSource)
    tl.cocluster(lazy, quiet=True)
    assert (lazy.obs["ccot"] == clustered.obs["ccot"]).all()


# Figures -------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [10_000, 40])
def test_blocks_are_drawn(clustered, most, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.setattr("ccot.scverse.pl._MOST_CELLS", most)
    monkeypatch.setattr("ccot.scverse.counts._BATCH_ROWS", 7)
    ax = pl.blocks(clustered, colorbar=False)
    assert ax.get_ylabel() == "cell cluster (size)"
    assert ax.get_title() == f"3 x {clustered.var['ccot_genes'].nunique()} blocks"
    assert ax.get_ylim()[0] == (150 if most > 150 else 38)
    del clustered.var["ccot_genes"]
    with pytest.raises(ValueError, match=r"call tl\.cocluster first"):
        pl.blocks(clustered)


def test_top_genes(clustered):
    with pytest.raises(ValueError, match=r"call tl\.marker_genes first"):
        pl.top_genes(clustered)
    tl.marker_genes(clustered)
    genes = pl.top_genes(clustered, n_genes=3)
    assert list(genes) == list(clustered.obs["ccot"].cat.categories)
    assert all(len(names) == 3 for names in genes.values())


# scanpy --------------------------------------------------------------------------------------


@pytest.fixture
def sc():
    pytest.importorskip("matplotlib").use("Agg")
    found = pytest.importorskip("scanpy")
    if is_before("scanpy", "1.10.3") or is_before("anndata", "0.10.8"):
        pytest.skip("scanpy works with NumPy 2 since 1.10.3")
    return found


def test_scores_and_effects_are_those_of_scanpy(sc, clustered):
    ours = tl.marker_genes(clustered)
    frame = sc.get.rank_genes_groups_df(clustered, None, key="ccot_markers")
    sc.pp.normalize_total(clustered, target_sum=1e4)
    sc.pp.log1p(clustered)
    sc.tl.rank_genes_groups(clustered, "ccot", method="t-test", pts=True)
    theirs = sc.get.rank_genes_groups_df(clustered, None)
    assert set(theirs.columns) == set(frame.columns)
    assert set(ours.columns) == (set(frame.columns) - {"pvals", "pvals_adj"}) | {"gene_cluster"}
    on = ["group", "names"]
    for mine in (ours, frame):
        both = theirs.merge(mine, on=on)
        assert len(both) == len(theirs)
        for column in ("scores", "logfoldchanges", "pct_nz_group", "pct_nz_reference"):
            np.testing.assert_allclose(both[f"{column}_x"], both[f"{column}_y"], rtol=2e-3)


def test_plots_of_scanpy_read_the_markers(sc, clustered):
    import matplotlib.pyplot as plt

    tl.marker_genes(clustered)
    pl.dotplot(clustered, show=False)
    options = {"show": False, "dendrogram": False}
    sc.pl.rank_genes_groups(clustered, key="ccot_markers", show=False)
    sc.pl.rank_genes_groups_dotplot(clustered, n_genes=3, key="ccot_markers", **options)
    sc.pl.dotplot(clustered, pl.top_genes(clustered), groupby="ccot", show=False)
    sc.pp.pca(clustered)
    sc.pl.pca(clustered, color="ccot", show=False)
    plt.close("all")


def test_dot_plots_ask_for_scanpy(clustered, monkeypatch):
    monkeypatch.setitem(sys.modules, "scanpy", None)
    with pytest.raises(ImportError, match=r"ccot\[scverse\]"):
        pl.dotplot(clustered)


def test_cells_that_ship_with_scanpy(sc):
    # pbmc68k_reduced holds scaled values in X and logarithms in raw.
    path = Path(sc.datasets.__file__).with_name("10x_pbmc68k_reduced.h5ad")
    if not path.exists():
        pytest.skip("scanpy came without its small data")
    adata = anndata.read_h5ad(path)
    tl.cocluster(adata, quiet=True)
    assert adata.uns["ccot"]["source"] == "raw"
    assert normalized_mutual_info_score(adata.obs["bulk_labels"], adata.obs["ccot"]) > 0.4


# Annotated cells -----------------------------------------------------------------------------


@pytest.mark.slow
def test_annotated_cells_with_the_number_given():
    folder = Path(os.environ.get("CCOT_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not (folder / "cells").is_dir():
        pytest.skip("no cells in CCOT_DATA")
    found = []
    for path in sorted((folder / "cells").glob("*.npz")):
        adata, types = load_cells(path)
        tl.cocluster(adata, n_row_clusters=len(set(types)), quiet=True)
        found.append(normalized_mutual_info_score(types, adata.obs["ccot"]))
    assert np.mean(found) >= 0.85


def load_cells(path):
    with np.load(path) as stored:
        parts = (stored["data"], stored["indices"], stored["indptr"])
        return anndata.AnnData(sp.csr_matrix(parts, shape=stored["shape"])), stored["row_labels"]
