"""What macOS and Windows do otherwise than Linux, simulated where it can be.

Processes that are spawned, not forked; no ``resource``; a console and a default encoding that know
few characters; paths with drive letters; files that cannot be replaced while they are open; folders
that cannot be locked.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ccot import TransportCoclustering, load_model
from ccot.io import read_matrix
from tests.conftest import PROJECT

NO_UNIX = """
import sys
from tests.platforms.windows import pretend
import psutil  # asks the system, which is not Windows
pretend()
"""
ENCODINGS_NAMED = """
import warnings
warnings.filterwarnings("error", category=EncodingWarning, module=r"ccot(\\..*)?")
"""
READ = """
from ccot.io import read_matrix
print(read_matrix(sys.argv[1]).values.sum())
"""
COMMANDS = """
import sys
from ccot.cli import app
for line in sys.argv[1:]:
    app(line.split("|"), standalone_mode=False)
"""
UNLOCKED = """
from pathlib import Path
from ccot.cli.results import result_folder
from ccot.persistence.atomic import locked_folder

for _ in range(2):
    with result_folder(Path("results")) as staged:
        (staged / "model.ccot").write_text("new")
with locked_folder("trials") as first, locked_folder("trials") as second:
    assert first == second
print(*sorted(path.name for path in Path().iterdir() if path.is_dir()))
"""
SPAWN = """
import multiprocessing
from ccot import CCOT
from ccot.datasets import load_simulated

def main():
    multiprocessing.set_start_method("spawn")
    matrix = load_simulated("D3", random_state=0).data
    alone, two = (CCOT(n_samplings=20, n_jobs=n, random_state=0).fit(matrix) for n in (1, 2))
    assert (alone.row_labels_ == two.row_labels_).all()
    assert (alone.column_labels_ == two.column_labels_).all()
    print(alone.n_row_clusters_)

if __name__ == "__main__":
    main()
"""


def run(script, *arguments, cwd, **environment):
    places = os.pathsep.join([str(PROJECT), os.environ.get("PYTHONPATH", "")])
    settings = {**os.environ, "PYTHONPATH": places, "OMP_NUM_THREADS": "1", **environment}
    path = cwd / "script.py"
    path.write_text(script, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(path), *arguments], cwd=cwd, env=settings, capture_output=True,
        check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout


def write_table(path, names, n_columns=12):
    """Two blocks of rows, and columns named with characters of many scripts."""
    rng = np.random.default_rng(0)
    values = np.where(np.arange(len(names)) % 2, 5.0, 0.0)[:, None] + rng.normal(
        size=(len(names), n_columns)
    )
    head = ",".join(["Größe", *(f"Δ{number} 基因" for number in range(n_columns))])
    lines = [head, *(",".join([name, *map("{:.3f}".format, row)])
                     for name, row in zip(names, values, strict=True))]  # fmt: skip
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_command_line_where_windows_differs(tmp_path):
    """No module of Unix, a console of cp1252, no default encoding that could be right by luck."""
    write_table(tmp_path / "table.csv", [f"ряд {number}" for number in range(40)])
    printed = run(
        ENCODINGS_NAMED + NO_UNIX + COMMANDS,
        "fit|table.csv", "predict|table-ccot/model.ccot|table.csv|--out|labels.csv",
        cwd=tmp_path, PYTHONIOENCODING="cp1252:strict", PYTHONUTF8="0", LC_ALL="C",
        PYTHONCOERCECLOCALE="0", PYTHONWARNDEFAULTENCODING="1", NO_COLOR="1",
    )  # fmt: skip
    assert "rows in 2 clusters" in printed.decode("cp1252")
    assert "ряд 3" in (tmp_path / "labels.csv").read_text(encoding="utf-8")
    assert (tmp_path / "table-ccot" / "report.html").read_text(encoding="utf-8")


def test_folders_that_cannot_be_locked(tmp_path):
    assert run(NO_UNIX + UNLOCKED, cwd=tmp_path).split() == [b"results", b"trials"]


def test_processes_that_are_spawned(tmp_path):
    assert int(run(SPAWN, cwd=tmp_path)) > 1


@pytest.mark.parametrize("kind", ["h5ad", "parquet"])
def test_reading_without_limits_of_the_system(kind, tmp_path):
    """Where there is no ``resource``, files are read without its limits."""
    matrix = np.arange(12.0).reshape(4, 3)
    path = tmp_path / f"table.{kind}"
    if kind == "h5ad":
        anndata = pytest.importorskip("anndata")
        anndata.AnnData(matrix).write_h5ad(path)
    else:
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        pandas.DataFrame(matrix, columns=list("abc")).to_parquet(path)
    script = NO_UNIX + READ
    assert float(run(script, str(path), cwd=tmp_path)) == matrix.sum()


@pytest.mark.slow
def test_tests_are_collected_where_windows_differs():
    """No test asks for what is not there before it is skipped."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "tests.platforms.windows",
         "-p", "no:cacheprovider", "tests"],
        cwd=PROJECT, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.skipif(os.name == "nt", reason="a name like any other on Unix only")
@pytest.mark.parametrize("name", ["C:table.csv", "C:\\data\\table.csv"])
def test_drive_letters_are_no_protocols(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_table(Path(name), [f"row {number}" for number in range(6)])
    assert read_matrix(name).values.shape == (6, 12)


def open_files(folder):
    links = (Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd"))
    targets = [os.readlink(link) for link in links if os.path.islink(link)]
    return [target for target in targets if target.startswith(str(folder))]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="asks Linux which files are open")
def test_no_file_stays_open(tmp_path):
    """Windows lets nobody replace or remove a file that is open."""
    matrix = np.random.default_rng(0).normal(size=(20, 8))
    write_table(tmp_path / "table.csv", [f"row {number}" for number in range(20)])
    np.save(tmp_path / "table.npy", matrix)
    mapped = read_matrix(tmp_path / "table.npy")  # open as long as the matrix is there
    model = TransportCoclustering(2, 2, random_state=0).fit(matrix)
    model.save(tmp_path / "model.ccot")
    loaded, read = load_model(tmp_path / "model.ccot"), read_matrix(tmp_path / "table.csv")
    loaded.save(tmp_path / "model.ccot")
    assert read.values.shape == (20, 12)
    assert {Path(name).name for name in open_files(tmp_path)} <= {"table.npy"}
    del mapped
    assert not open_files(tmp_path)
