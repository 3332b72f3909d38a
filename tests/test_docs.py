"""The pages: their code runs, their links lead somewhere, and every public name is listed."""

import ast
import doctest
import importlib
import inspect
import json
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
import typer
from scipy.io import savemat
from typer.testing import CliRunner

from ccot import TransportCoclustering
from ccot.blocks import families
from ccot.cli import app
from ccot.datasets import load_simulated
from ccot.io import InputError

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.glob("**/*.md") if "_build" not in path.parts)
SOURCE = ROOT / "src" / "ccot"
OPTIONAL = {"anndata", "dask", "distributed", "fastapi", "h5py", "matplotlib", "pandas", "polars",
            "pyarrow", "scanpy", "torch", "uvicorn", "zarr"}  # fmt: skip
# What only `ccot serve` loads.
SERVICE = {"guards.py", "messages.py", "server.py", "service.py"}
PUBLIC = (
    "ccot",
    "baselines",
    "datasets",
    "io",
    "metrics",
    "plotting",
    "recommend",
    "report",
    "scverse.pl",
    "scverse.tl",
)


def blocks_of(page: Path, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE
    )


def test_answers_print_what_they_say():
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    names: dict = {}
    blocks = blocks_of(DOCS / "faq.md", "pycon")
    for number, block in enumerate(blocks):
        test = doctest.DocTestParser().get_doctest(block, names, f"faq {number}", "faq.md", 0)
        test.globs = names  # what one answer defines, the next may use
        runner.run(test, clear_globs=False)
    assert runner.tries > len(blocks)
    assert not runner.failures


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", DOCS / "index.md"], ids=lambda page: page.name
)
def test_first_steps_run(page, tmp_path, monkeypatch, capsys):
    matplotlib = pytest.importorskip("matplotlib")
    before = matplotlib.get_backend()
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    try:
        for block in blocks_of(page, "python"):
            exec(block, names)
    finally:
        matplotlib.use(before)
    assert "in 3 clusters" in capsys.readouterr().out


def test_tutorial_prints_what_it_says(tmp_path, monkeypatch):
    """Commands and Python of the tutorial on files, in its order."""
    monkeypatch.chdir(tmp_path)
    page = DOCS / "tutorials" / "file.md"
    printed = ""
    for line in "".join(blocks_of(page, "sh")).splitlines():
        if line == "head -n 4 D2.csv > new.csv":
            head = Path("D2.csv").read_text().splitlines(keepends=True)[:4]
            Path("new.csv").write_text("".join(head))
            continue
        command, *arguments = line.split()
        assert command == "ccot"
        outcome = CliRunner().invoke(app, arguments)
        assert outcome.exit_code == 0, outcome.output
        printed += outcome.output
    printed += Path("D2-ccot/row_labels.csv").read_text()
    for said in blocks_of(page, "text"):
        assert " ".join(said.split()) in " ".join(printed.split())
    (python,) = blocks_of(page, "python")
    exec(python, {})


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES], ids=str)
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", page.read_text())
    written = [target for target in targets if "auto_examples/" not in target]
    missing = [target for target in written if not (page.parent / target).exists()]
    assert not missing


def test_tables_are_those_of_the_stored_results(monkeypatch):
    """All pages but that of the reproduction, which has a test of its own."""
    if not (ROOT / "benchmarks" / "results").is_dir():
        pytest.skip("no benchmarks/results: tables are rendered from them in the repository")
    monkeypatch.syspath_prepend(DOCS)
    render = importlib.import_module("render").render
    pages = {path: path.read_text() for path in PAGES if path.stem != "reproduction"}
    assert any("<!-- table:" in page for page in pages.values())
    stale = [str(path.relative_to(DOCS)) for path, page in pages.items() if render(page) != page]
    assert not stale, "run python docs/render.py"


def test_reference_lists_every_public_name():
    listed = (DOCS / "api.rst").read_text().split()
    for name in PUBLIC:
        module = importlib.import_module("ccot" if name == "ccot" else f"ccot.{name}")
        public = {thing for thing in module.__all__ if not thing.startswith("__")}
        assert public <= set(listed), f"{module.__name__} has names that docs/api.rst does not list"


# The architecture page and the page on changes ------------------------------------------------


def test_public_functions_with_random_state_take_rng():
    """As SPEC 7 asks, by keyword only; estimators have scikit-learn's name alone."""
    names = re.findall(r"currentmodule:: (\S+)|^   ([a-z]\w+)$", (DOCS / "api.rst").read_text(),
                       flags=re.MULTILINE)  # fmt: skip
    place, taking = None, []
    for module, name in names:
        place = importlib.import_module(module) if module else place
        function = getattr(place, name, None) if name else None
        known = inspect.signature(function).parameters if callable(function) else {}
        if "random_state" in known:
            assert known["rng"].kind is inspect.Parameter.KEYWORD_ONLY, name
            taking.append(name)
    assert taking == ["make_latent_blocks", "load_simulated", "cocluster"]


def test_architecture_lists_every_module_once():
    page = (DOCS / "architecture.md").read_text()
    rows = dict(re.findall(r"^\| `([\w./]+)` \|.*?\|(.*)\|$", page, flags=re.MULTILINE))
    for folder in (path.parent for path in SOURCE.glob("*/__init__.py")):
        names = {".".join(path.relative_to(folder).with_suffix("").parts)
                 for path in folder.rglob("*.py") if not path.name.startswith("__")}  # fmt: skip
        listed = re.findall(r"`([\w.]+)`", rows.pop(f"{folder.name}/"))
        assert sorted(listed) == sorted(names), f"{folder.name}: run python docs/render.py"
    alone = {path.name for path in SOURCE.glob("*.py") if not path.name.startswith("__")}
    assert alone <= set(rows)


def test_every_module_is_in_a_layer_of_the_page():
    page = (DOCS / "architecture.md").read_text()
    table = page.partition("<!-- table: layers -->")[2].partition("<!-- end: layers -->")[0]
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (contract,) = settings["contracts"]
    assert contract["exhaustive"]
    found = {
        path.stem
        for path in (*SOURCE.glob("*.py"), *(p.parent for p in SOURCE.glob("*/__init__.py")))
    }
    found -= {"__init__", *contract["exhaustive_ignores"]}
    assert found == set(re.findall(r"`(\w+)`", table))


def test_optional_libraries_are_imported_inside_functions():
    for path in SOURCE.rglob("*.py"):
        nodes = [node for node in ast.parse(path.read_text(encoding="utf-8")).body
                 if isinstance(node, ast.Import | ast.ImportFrom)]  # fmt: skip
        names = {name.name.split(".")[0] for node in nodes for name in node.names}
        names |= {(node.module or "").split(".")[0] for node in nodes
                  if isinstance(node, ast.ImportFrom)}  # fmt: skip
        # Programs that read untrusted files are started, never imported; AnnData brings pandas.
        apart = {"isolated", "scverse"} & set(path.parts) or path.name in SERVICE
        assert not names & OPTIONAL or apart, path


@pytest.fixture
def changes(monkeypatch) -> dict:
    """The names that the code on the page of changes defines."""
    monkeypatch.setattr(families, "FAMILIES", dict(families.FAMILIES))
    names: dict = {}
    for block in blocks_of(DOCS / "changing.md", "python"):
        exec(block, names)
    return names


def test_the_family_of_the_page_is_a_family(changes):
    family = changes["FAMILIES"]["exponential"]
    total, exposure = np.array([3.0, 8.0]), np.array([2.0, 5.0])
    mean = total / exposure
    likelihoods = [
        -total / (scale * mean) - exposure * np.log(scale * mean) for scale in (0.9, 1.0, 1.1)
    ]
    np.testing.assert_allclose(family.information(total, exposure), likelihoods[1], rtol=1e-12)
    assert (likelihoods[1] > np.maximum(likelihoods[0], likelihoods[2])).all()
    natural, cumulant = family.terms(total, exposure, 1.5)
    smooth = (total + 0.75) / (exposure + 0.5)
    np.testing.assert_allclose(
        total * natural - exposure * cumulant, -total / smooth - exposure * np.log(smooth)
    )


def test_the_reader_of_the_page_reads(changes, tmp_path):
    path = tmp_path / "x.mat"
    savemat(path, {"x": np.array([[1.0, 3.0], [2.0, 4.0]])})
    np.testing.assert_array_equal(changes["read_mat"](path).values, [[1, 3], [2, 4]])
    savemat(path, {"x": np.eye(2), "y": np.eye(2)})
    with pytest.raises(InputError, match="holds 2 variables"):
        changes["read_mat"](path)
    path.write_bytes(path.read_bytes()[:150])
    with pytest.raises(InputError, match="MATLAB"):
        changes["read_mat"](path)


def test_the_command_of_the_page_runs(changes, tmp_path):
    matrix = load_simulated("D1", random_state=0).data[:60]
    model = TransportCoclustering(2, 2, random_state=0).fit(matrix)
    model.save(tmp_path / "model.ccot")
    program = typer.Typer()
    program.command("describe")(changes["describe"])
    outcome = CliRunner().invoke(program, [str(tmp_path / "model.ccot")])
    assert outcome.output.strip() == model.summary().strip()


@pytest.mark.parametrize("path", re.findall(r"`((?:src|tests|docs|benchmarks|fuzz)/[\w./]+\.\w+)`",
                                            (DOCS / "changing.md").read_text()))  # fmt: skip
def test_files_of_the_page_of_changes_exist(path):
    assert (ROOT / path).exists()


# Where stored results come from ---------------------------------------------------------------


def test_rows_of_several_runs_name_each_run(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    stored = importlib.import_module("stored")
    run = {
        "command": "python -m benchmarks.truth --work /tmp/x a.py",
        "commit": "abc",
        "date": "D1",
    }
    facts = {**run, "date": "D2"}
    alone = stored.source("truth", {"facts": facts}, "Note.", [{"run": run}, {"run": run}])
    assert alone == (
        "\n\nNote. Stored in `benchmarks/results/truth.json`; made by "
        "`python -m benchmarks.truth --work PATH a.py`, D1, commit `abc`."
    )
    mixed = stored.source("truth", {"facts": facts}, rows=[{"run": run}, {}, {}])
    assert "1 of 3 rows made by `python -m benchmarks.truth --work PATH a.py`" in mixed
    assert "2 of 3 rows made by one or more runs of `python -m benchmarks.truth` that" in mixed
    runs = [{"run": {**run, "commit": f"c{k % 2}", "date": f"D{k}"}} for k in range(5)]
    assert stored.source("truth", {"facts": facts}, rows=runs).endswith(
        "; made by 5 runs of `python -m benchmarks.truth`, which the file names row by row, "
        "between D0 and D4, at the commits `c0`, `c1`."
    )
    unknown = stored.source("truth", {"facts": facts}, rows=[{}, {}])
    assert "a.py" not in unknown
    assert "not recorded row by row, the last on D2" in unknown


def test_no_page_names_a_folder_of_one_machine():
    for page in PAGES:
        assert not re.findall(r"`[^`\n]* /(?:tmp|home|root|work)/[^`\n]*`", page.read_text()), page


def test_a_measured_row_keeps_its_run(monkeypatch):
    record = pytest.importorskip("benchmarks.record")
    monkeypatch.setattr("sys.argv", ["/x/benchmarks/truth.py", "--only", "two words", "/tmp/y"])
    row = record.of_this_run({"cases": 3})
    assert row["run"]["command"] == "python -m benchmarks.truth --only 'two words' PATH"
    assert set(row["run"]) == {"command", "commit", "date"}
    json.dumps(row)
