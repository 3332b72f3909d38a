"""The suite of methods that find their own number."""

import json
import subprocess
import sys
from functools import partial
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

from ccot.cli import app
from ccot.datasets import make_latent_blocks
from ccot.experiments.bench.automatic import automatic_rivals, labelled_cases, mean_scores
from ccot.experiments.bench.measure import Limits, measure
from ccot.experiments.bench.rivals import Job, Rival

# HDBSCAN leaves rows out, and sparsebm sees which entries there are only.
SURE = [
    name
    for name, rival in automatic_rivals().items()
    if rival.version is not None and name not in ("HDBSCAN", "sparsebm, ICL", "graph-tool")
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


class _RecordedGraph:
    """What the documented interface of graph-tool is called with."""

    def __init__(self, directed):
        assert directed is False

    def add_vertex(self, number):
        self.n_vertices = number

    def add_edge_list(self, edges):
        self.edges = edges

    def new_vp(self, kind, vals):
        assert kind == "int"
        assert len(vals) == self.n_vertices
        return vals

    def new_ep(self, kind, vals):
        assert len(vals) == len(self.edges)
        return kind, np.asarray(vals).tolist()


@pytest.fixture
def graph_tool(monkeypatch):
    """A module that takes the side of every vertex, and one row apart, for its block."""
    asked = []

    def minimize_blockmodel_dl(graph, state_args):
        asked.append((graph, state_args))
        blocks = np.array(state_args["clabel"]) + 5
        blocks[0] = 9
        return SimpleNamespace(get_blocks=lambda: SimpleNamespace(a=blocks))

    module = ModuleType("graph_tool")
    module.__dict__.update(
        __version__="2.0",
        Graph=_RecordedGraph,
        seed_rng=lambda seed: asked.append(seed),
        openmp_set_num_threads=lambda number: asked.append(number),
    )
    module.__spec__ = ModuleSpec("graph_tool", None, origin="somewhere")
    inference = ModuleType("graph_tool.inference")
    inference.__dict__.update(minimize_blockmodel_dl=minimize_blockmodel_dl)
    monkeypatch.setitem(sys.modules, "graph_tool", module)
    monkeypatch.setitem(sys.modules, "graph_tool.inference", inference)
    return asked


def test_graph_tool_gets_counts_as_a_multigraph_of_two_sides(graph_tool):
    rival = automatic_rivals()["graph-tool"]
    assert rival.version == "2.0"
    matrix = sp.csr_array(np.array([[2.0, 0, 0.2], [0, 3, 0]]))
    rows, columns = rival.fit(Job(matrix, (2, 0), 7))
    seed, n_threads, (graph, state) = graph_tool
    assert (seed, n_threads, graph.n_vertices) == (7, 1, 5)
    assert graph.edges.tolist() == [[0, 2], [0, 4], [1, 3]]
    # A stored entry is there once at least.
    assert state["eweight"] == ("int", [2, 1, 3])
    assert state["deg_corr"] is True
    assert "recs" not in state
    assert state["clabel"].tolist() == state["pclabel"].tolist() == [0, 0, 1, 1, 1]
    assert rows.tolist() == [9, 5]
    assert columns.tolist() == [6, 6, 6]


def test_graph_tool_gets_real_values_as_weights_of_all_pairs(graph_tool):
    matrix = np.array([[1.5, 0.0], [-2.0, 3.0]])
    automatic_rivals()["graph-tool"].fit(Job(matrix, (2, 0), 0))
    graph, state = graph_tool[-1]
    assert graph.edges.tolist() == [[0, 2], [0, 3], [1, 2], [1, 3]]
    assert state["recs"] == [("double", [1.5, 0.0, -2.0, 3.0])]
    assert state["rec_types"] == ["real-normal"]
    assert "eweight" not in state


@pytest.fixture
def khiops(monkeypatch):
    """A module that puts row 1 of a matrix apart, or fails with a return code."""
    asked, codes = [], []

    class KhiopsRuntimeError(Exception):
        pass

    def train(first, dictionary, name, text, coclustering_report_file_path, **options):
        if codes:
            raise KhiopsRuntimeError(f"ended with return code {codes[0]}")
        asked.append((Path(text).read_text().splitlines(), options))
        groups = [[first(0), first(2), " * "], [first(1)]]
        found = {"dimensionPartitions": [{"valueGroups": [{"values": g} for g in groups]}]}
        Path(coclustering_report_file_path).write_text(json.dumps({"coclusteringReport": found}))

    core = ModuleType("khiops.core")
    core.__dict__.update(
        build_dictionary_from_data_table=lambda *arguments, **options: None,
        train_coclustering=partial(train, "r{}".format),
        train_instance_variable_coclustering=partial(train, lambda row: str(row + 2)),
    )
    exceptions = ModuleType("khiops.core.exceptions")
    exceptions.__dict__.update(KhiopsRuntimeError=KhiopsRuntimeError)
    module = ModuleType("khiops")
    module.__dict__.update(core=core)
    for name, one in (("", module), (".core", core), (".core.exceptions", exceptions)):
        monkeypatch.setitem(sys.modules, f"khiops{name}", one)
    return SimpleNamespace(asked=asked, codes=codes, error=KhiopsRuntimeError)


def test_khiops_gets_counts_as_a_long_table(khiops):
    pytest.importorskip("pandas")
    matrix = sp.csr_array(np.array([[2.0, 0], [0, 0.2], [0, 3]]))
    labels, _ = automatic_rivals()["Khiops"].fit(Job(matrix, (2, 0), 0))
    assert labels.tolist() == [0, 1, 0]
    [(lines, options)] = khiops.asked
    assert lines == ["row\tcolumn\tcount", "r0\tc0\t2", "r1\tc1\t1", "r2\tc1\t3"]
    assert options["coclustering_variables"] == ["row", "column"]
    assert options["frequency_variable"] == "count"
    assert options["max_cores"] == 1


def test_khiops_gets_real_values_as_a_table(khiops):
    pytest.importorskip("pandas")
    matrix = np.array([[1.5, 0.0], [-2.0, 3.0], [1.5, 0.5]])
    labels, _ = automatic_rivals()["Khiops"].fit(Job(matrix, (2, 0), 0))
    assert labels.tolist() == [0, 1, 0]
    [(lines, options)] = khiops.asked
    assert lines[:2] == ["c0\tc1", "1.5\t0.0"]
    assert "frequency_variable" not in options


@pytest.mark.parametrize(("code", "kind"), [(-24, TimeoutError), (-9, TimeoutError), (2, None)])
def test_khiops_that_was_ended_for_its_time_is_told_from_one_that_failed(khiops, code, kind):
    pytest.importorskip("pandas")
    khiops.codes.append(code)
    with pytest.raises(kind or khiops.error):
        automatic_rivals()["Khiops"].fit(Job(np.eye(3), (2, 0), 0))


def test_rivals_that_are_not_installed_are_named_and_not_asked(tmp_path, monkeypatch):
    monkeypatch.setattr("ccot.experiments.bench.rivals.installed_version", lambda package: None)
    out = tmp_path / "out.json"
    asked = ["bench", "--suite", "automatic", "--out", str(out), "--rival", "graph-tool"]
    result = CliRunner().invoke(app, [*asked, "--rival", "Khiops"])
    assert result.exit_code == 0, result.output
    assert "not installed: khiops, graph-tool" in result.output
    assert json.loads(out.read_text())["trials"] == []


def _ended(job):
    raise TimeoutError


def _in_a_program(job):
    subprocess.run([sys.executable, "-c", "sum(range(10**7))"], check=True)
    return np.zeros(len(job.matrix), int), None


def test_a_program_that_was_stopped_is_no_failure_and_its_time_is_counted():
    zoo = labelled_cases()[0]
    ended = measure(zoo, Rival("ended", _ended, kinds=("labelled",)), 0, Limits(60, 4))
    assert ended == {"status": "stopped after 60 s"}
    done = measure(zoo, Rival("program", _in_a_program, kinds=("labelled",)), 0, Limits(60, 4))
    assert done["processor_seconds"] > 0.05
