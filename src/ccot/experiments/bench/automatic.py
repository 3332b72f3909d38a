"""The suite of automatic numbers: real matrices with row classes, and rivals that find how many."""

import json
import logging
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import HDBSCAN, KMeans, SpectralCoclustering
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import silhouette_score
from sklearn.preprocessing import StandardScaler
from sklearn.utils.extmath import randomized_svd

from ccot.blocks.families import ratio
from ccot.datasets import load_votes, load_zoo
from ccot.experiments.bench.cases import Case, Planted
from ccot.experiments.bench.rivals import Job, Rival, fit_transport, without_negative

# Libraries of rivals are imported where they are used: types are checked without them, too.
_NUMBERS = range(2, 21)
_TAU_STARTS, _TAU_SWEEPS = 10, 100


def labelled_cases(folder: Path | None = None) -> list[Case]:
    """Return the cases of a folder, or those that ship, each kind by growing size."""
    if folder is None:
        shipped = {"zoo": load_zoo, "votes": load_votes}
        return [_case("shipped", name, partial(_shipped, load)) for name, load in shipped.items()]
    # Fits run in folders of their own. Sparse matrices are stored by their parts, others as X.
    paths = sorted(folder.resolve().glob("*/*.npz"))
    cases = [_case(p.parent.name, p.stem, partial(_stored, p)) for p in paths if _has_classes(p)]
    if not cases:
        raise ValueError(f"{folder} has no KIND/NAME.npz with row_labels in its subfolders")
    return sorted(cases, key=lambda case: (case.axis, case.size))


def _case(kind: str, name: str, make: Callable[[int], Planted]) -> Case:
    matrix = make(0).matrix
    size = matrix.nnz if sp.issparse(matrix) else matrix.size
    return Case(name, kind, size, matrix.shape, "labelled", make, partial(_shipped, load_zoo))


def _has_classes(path: Path) -> bool:
    with np.load(path, allow_pickle=False) as stored:
        return "row_labels" in stored


def _stored(path: Path, seed: int) -> Planted:
    with np.load(path, allow_pickle=False) as stored:
        if "X" in stored:
            matrix: Any = stored["X"].astype(np.float64)
        else:
            # scikit-learn's K-means takes 32-bit indices only.
            places = (stored[part].astype(np.int32) for part in ("indices", "indptr"))
            parts = stored["data"].astype(np.float64), *places
            matrix = sp.csr_array(parts, shape=tuple(stored["shape"].tolist()))
        return _labelled(matrix, stored["row_labels"])


def _shipped(load: Callable[[], Any], seed: int) -> Planted:
    bunch = load()
    # Of a bill that a member did not vote on, rivals know half.
    classes = next(iter(bunch.annotations.values()))
    return _labelled(np.nan_to_num(np.asarray(bunch.data, dtype=float), nan=0.5), classes)


def _labelled(matrix: Any, classes: Any) -> Planted:
    labels = np.unique(np.asarray(classes), return_inverse=True)[1]
    return Planted(matrix, labels, None, (int(labels.max()) + 1, 0))


def automatic_rivals() -> dict[str, Rival]:
    """Return those that find the number of clusters themselves, by name."""
    entrants = [
        ("TransportCoclustering", partial(fit_transport, False), "ccot"),
        ("K-means, silhouette", _k_means, "scikit-learn"),
        ("SpectralCoclustering, eigengap", _spectral, "scikit-learn"),
        ("HDBSCAN", _hdbscan, "scikit-learn"),
        ("Louvain", partial(_modularity, "Louvain"), "scikit-network"),
        ("Leiden", partial(_modularity, "Leiden"), "scikit-network"),
        ("leidenalg, bipartite", _leidenalg, "leidenalg"),
        ("tau objective", _tau, "ccot"),
        ("sparsebm, ICL", _sparsebm, "sparsebm"),
        ("Khiops", _khiops, "khiops"),
        ("graph-tool", _graph_tool, "graph-tool"),
    ]
    return {one[0]: Rival(*one, informed=False, kinds=("labelled",)) for one in entrants}


def _vectors(matrix: Any) -> np.ndarray:
    """Return leading singular vectors of counts as TF-IDF, of the rest as standardised columns."""
    prepare = TfidfTransformer() if sp.issparse(matrix) else StandardScaler()
    n_vectors = min(50, min(matrix.shape) - 1)
    return TruncatedSVD(n_vectors, random_state=0).fit_transform(prepare.fit_transform(matrix))


def _k_means(job: Job) -> Any:
    points = _vectors(job.matrix)
    numbers = [number for number in _NUMBERS if number < len(points)]
    found = [KMeans(k, n_init=3, random_state=job.seed).fit_predict(points) for k in numbers]
    few = {"sample_size": min(2000, len(points)), "random_state": 0}
    best = int(np.argmax([silhouette_score(points, labels, **few) for labels in found]))
    return found[best], None


def _hdbscan(job: Job) -> Any:
    return HDBSCAN(copy=True).fit_predict(_vectors(job.matrix)), None


def _spectral(job: Job) -> Any:
    """Cut where the singular values of the normalised matrix fall most."""
    matrix, rows = _without_empty(job.matrix)
    scale = [1 / np.sqrt(np.asarray(matrix.sum(axis=axis)).ravel()) for axis in (1, 0)]
    normal = sp.diags_array(scale[0]) @ sp.csr_array(matrix) @ sp.diags_array(scale[1])
    values = randomized_svd(normal, min(_NUMBERS.stop, min(matrix.shape)), random_state=job.seed)[1]
    number = int(np.argmax(values[1:-1] - values[2:])) + 2
    found = SpectralCoclustering(number, random_state=job.seed).fit(sp.csr_matrix(matrix))
    return _spread(found.row_labels_, rows), None


def _modularity(name: str, job: Job) -> Any:
    from sknetwork import clustering  # pyright: ignore[reportMissingImports]

    found = getattr(clustering, name)(random_state=job.seed).fit(_weights(job.matrix))
    return found.labels_row_, found.labels_col_


def _leidenalg(job: Job) -> Any:
    import igraph  # pyright: ignore[reportMissingImports]
    import leidenalg  # pyright: ignore[reportMissingImports]

    weights = _weights(job.matrix).tocoo()
    n_rows, n_columns = weights.shape
    graph = igraph.Graph(n_rows + n_columns, np.column_stack([weights.row, weights.col + n_rows]))
    # Barber's modularity: all pairs are expected to meet, less pairs of the same side.
    sizes = [np.asarray(weights.sum(axis=axis)).ravel() for axis in (1, 0)]
    none = graph.subgraph_edges([], delete_vertices=False)
    layers = [
        leidenalg.CPMVertexPartition(
            edges,
            weights=weights.data.tolist() if edges is graph else None,
            node_sizes=np.concatenate([sizes[0] * rows, sizes[1] * columns]).tolist(),
            resolution_parameter=1 / weights.data.sum(),
        )
        for edges, rows, columns in ((graph, 1, 1), (none, 1, 0), (none, 0, 1))
    ]
    optimiser = leidenalg.Optimiser()
    optimiser.set_rng_seed(job.seed)
    optimiser.optimise_partition_multiplex(layers, layer_weights=[1, -1, -1])
    labels = np.array(layers[0].membership)
    return labels[:n_rows], labels[n_rows:]


def _sparsebm(job: Job) -> Any:
    from sparsebm import ModelSelection  # pyright: ignore[reportMissingImports]

    np.random.seed(job.seed)  # noqa: NPY002 - sparsebm draws from the global generator
    pattern = sp.csr_matrix((job.matrix != 0).astype(float))
    logging.getLogger("sparsebm").setLevel(logging.ERROR)
    best = ModelSelection("LBM", use_gpu=False, plot=False).fit(pattern).best
    return best.row_labels, best.column_labels


def _khiops(job: Job) -> Any:
    """Cluster rows and columns that meet as often as counts say, or instances and variables."""
    import pandas as pd

    if not sp.issparse(job.matrix):
        names = [f"c{column}" for column in range(job.matrix.shape[1])]
        return khiops_rows(pd.DataFrame(job.matrix, columns=names), len(job.matrix)), None
    rows, columns, counts = _entries(job.matrix)
    named = {"row": [f"r{row}" for row in rows], "column": [f"c{column}" for column in columns]}
    return khiops_rows(pd.DataFrame({**named, "count": counts}), job.matrix.shape[0], True), None


def khiops_rows(frame: Any, n_rows: int, counts: bool = False) -> np.ndarray:
    """Return row clusters by Khiops, of a table of instances, or of counts.

    Counts have the columns ``row`` (names: "r0" and so on), ``column`` and ``count``; rows without
    any are in cluster 0. The program has the limits of this process: TimeoutError if they end it.
    """
    from khiops import core  # pyright: ignore[reportMissingImports]
    from khiops.core.exceptions import KhiopsRuntimeError  # pyright: ignore[reportMissingImports]

    labels = np.zeros(n_rows, dtype=int)
    with tempfile.TemporaryDirectory() as folder:
        text, known, found = (str(Path(folder, name)) for name in ("t.txt", "t.kdic", "t.khcj"))
        frame.to_csv(text, sep="\t", index=False)
        core.build_dictionary_from_data_table(text, "table", known, field_separator="\t")
        options = {"header_line": True, "field_separator": "\t", "max_cores": 1}
        train = core.train_instance_variable_coclustering
        if counts:
            train = core.train_coclustering
            options |= {"coclustering_variables": ["row", "column"], "frequency_variable": "count"}
        try:
            train(known, "table", text, coclustering_report_file_path=found, **options)
        except KhiopsRuntimeError as error:
            if not re.search(r"return code -(9|24)\b", str(error)):
                raise
            raise TimeoutError("Khiops was ended, as a rule for its time") from None
        if not Path(found).exists():  # "No informative coclustering found in data"
            return labels
        report = json.loads(Path(found).read_text())["coclusteringReport"]
    # Instances are called by their lines, of which the first is the header.
    first = 0 if counts else 2
    for label, group in enumerate(report["dimensionPartitions"][0]["valueGroups"]):
        # A group may hold " * " as well, for names that are not in the table.
        names = (name.removeprefix("r") for name in group["values"])
        labels[[int(name) - first for name in names if name.isdigit()]] = label
    return labels


def _graph_tool(job: Job) -> Any:
    """Fit the degree-corrected block model of least description length to the bipartite graph."""
    import graph_tool  # pyright: ignore[reportMissingImports]
    from graph_tool.inference import minimize_blockmodel_dl  # pyright: ignore[reportMissingImports]

    graph_tool.seed_rng(job.seed)
    np.random.seed(job.seed)  # noqa: NPY002 - it draws from both
    graph_tool.openmp_set_num_threads(1)
    n_rows, n_columns = job.matrix.shape
    sides = np.repeat([0, 1], [n_rows, n_columns])
    counted = sp.issparse(job.matrix)
    rows, columns, values = _entries(job.matrix)
    graph = graph_tool.Graph(directed=False)
    graph.add_vertex(n_rows + n_columns)
    graph.add_edge_list(np.column_stack([rows, columns + n_rows]))
    side, weight = graph.new_vp("int", sides), graph.new_ep("int" if counted else "double", values)
    edges = {"eweight": weight} if counted else {"recs": [weight], "rec_types": ["real-normal"]}
    # No block has both rows and columns, and none is charged for saying so.
    model = {"deg_corr": True, "clabel": side, "pclabel": side, **edges}
    blocks = np.array(minimize_blockmodel_dl(graph, state_args=model).get_blocks().a)
    return blocks[:n_rows], blocks[n_rows:]


def _tau(job: Job) -> Any:
    """Maximise the numerators of both Goodman-Kruskal taus (Battaglia, Peiretti, Pensa, 2023)."""
    # That of the rows, the sum of T_kl^2 / T_.l - T_k.^2 over the shares T of blocks, is convex in
    # the memberships: to give every row to the cluster of its steepest ascent never lowers it.
    matrix, rows = _without_empty(job.matrix)
    shares = sp.csr_array(matrix / matrix.sum())
    rng = np.random.default_rng(job.seed)
    runs = [_tau_run(shares, rng) for _ in range(_TAU_STARTS)]
    return _spread(max(runs, key=lambda run: run[0])[1], rows), None


def _tau_run(shares: sp.csr_array, rng: np.random.Generator) -> tuple[float, np.ndarray]:
    most = min(_NUMBERS.stop - 1, *shares.shape)
    labels = [rng.integers(most, size=size) for size in shares.shape]
    sides, value = (shares, sp.csr_array(shares.T)), -np.inf
    for _ in range(_TAU_SWEEPS):
        for axis, side in enumerate(sides):
            profile = side @ np.eye(most)[labels[1 - axis]]
            blocks = np.eye(most)[labels[axis]].T @ profile
            prototypes = ratio(blocks, blocks.sum(axis=0)) - blocks.sum(axis=1, keepdims=True)
            labels[axis] = np.argmax(profile @ prototypes.T, axis=1)
        blocks = np.eye(most)[labels[0]].T @ shares @ np.eye(most)[labels[1]]
        last, value = value, sum(
            float(ratio(side**2, side.sum(axis=0)).sum() - (side.sum(axis=1) ** 2).sum())
            for side in (blocks, blocks.T)
        )  # fmt: skip
        if value <= last + 1e-12:
            break
    return value, labels[0]


def _weights(matrix: Any) -> sp.csr_matrix:
    """Return edges of the graph of rows and columns: TF-IDF of counts, the rest from zero up."""
    if sp.issparse(matrix):
        return sp.csr_matrix(TfidfTransformer().fit_transform(matrix))
    return sp.csr_matrix(without_negative(matrix))


def _entries(matrix: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, columns and values: all, or those stored, as whole numbers from 1 up."""
    if not sp.issparse(matrix):
        return *(places.ravel() for places in np.indices(matrix.shape)), matrix.ravel()
    stored = sp.coo_array(matrix)
    return *stored.coords, np.maximum(np.rint(stored.data), 1).astype(np.int64)


def _without_empty(matrix: Any) -> tuple[Any, np.ndarray]:
    """Leave out rows and columns of zeros; the mask tells which rows stayed."""
    matrix = without_negative(matrix)
    rows, columns = (np.asarray(matrix.sum(axis=axis)).ravel() > 0 for axis in (1, 0))
    return matrix[rows][:, columns], rows


def _spread(labels: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Give the rows that were left out a cluster of their own."""
    found = np.full(len(rows), labels.max() + 1)
    found[rows] = labels
    return found


def mean_scores(result: dict[str, Any]) -> Iterator[tuple[str, dict[str, dict[str, float]]]]:
    """Yield for every rival, by kind of data, the means of its scores over sets and seeds."""
    kinds = {case["name"]: case["axis"] for case in result["cases"]}
    for rival in dict.fromkeys(trial["rival"] for trial in result["trials"]):
        by_kind: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for trial in result["trials"]:
            if trial["rival"] == rival and trial["status"] == "done":
                by_kind[kinds[trial["case"]]].append(trial)
        scores = {
            kind: {key: float(np.mean([t[key] for t in own])) for key in ("nmi", "ami", "ari")}
            | {"sets": len({t["case"] for t in own})}
            for kind, own in by_kind.items()
        }
        yield rival, scores
