"""Inputs that cannot be read end in one line that says what to do, and leave nothing behind."""

import gzip
import json
import pickle
import zipfile

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp

from ccot.io import InputError, read_matrix


def text(content, encoding="utf-8"):
    return ("in.csv", lambda path: path.write_bytes(content.encode(encoding)))


def raw(name, content):
    return (name, lambda path: path.write_bytes(content))


def made(name, write, keep=1.0):
    """A file as a library writes it, of which only a part is kept."""

    def build(path):
        write(path)
        if keep < 1:
            content = path.read_bytes()
            path.write_bytes(content[: int(keep * len(content))])

    return (name, build)


def npy(shape, body=b"\0" * 8, dtype="<f8"):
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + body


def archive(members, **options):
    def build(path):
        with zipfile.ZipFile(path, "w", **options) as file:
            for name, content in members.items():
                file.writestr(name, content)

    return build


def bad_sparse(path):
    matrix = sp.csr_array(np.eye(4))
    matrix.indices = np.array([0, 1, 99, 3])
    sp.save_npz(path, matrix)


def no_h5ad(path):
    with h5py.File(path, "w") as file:
        file["x"] = 1


def without_x(path):
    names = pd.DataFrame(index=["a", "b"])
    anndata.AnnData(obs=names, var=names).write_h5ad(path)


FRAME = pd.DataFrame(np.arange(12.0).reshape(4, 3), columns=["a", "b", "c"])
MARKET = "%%MatrixMarket matrix coordinate real general\n"
NUMBERS = "".join(f"{i},{i * i % 7},{i % 5}\n" for i in range(9))
EMPTY_CELLS = "a,b,c\n" + ",,\n" * 5

CCOT = ["--method", "ccot"]

INPUTS = {
    # text
    "empty file": (text(""), [], "is empty"),
    "blank lines": (text("\n\n  \n"), [], "is empty"),
    "header only": (text("a,b,c\n"), [], "is empty"),
    "one column": (text("a\n1\n2\n"), [], "pass --delimiter"),
    "one row": (text("a,b,c\n1,2,3\n"), [], "needs at least two of each"),
    "one value column": (text("g,a\nx,1\ny,2\n"), [], "needs at least two of each"),
    "short line": (text("a,b,c\n1,2,3\n4,5\n"), [], "line 3 has 2 cells"),
    "long line": (text("a,b\n1,2\n3,4,5\n"), [], "line 3 has 3 cells"),
    "text cell": (text("a,b\n1,2\n3,tall\n"), CCOT, r"1 of 2 columns hold words \('b': 'tall'\)"),
    "text column": (text("g,a,kind\nx,1,red\ny,2,blue\n"), CCOT, "out with --drop kind"),
    "text columns": (
        text("a,k,t\n1,red,low\n2,blue,high\n"), CCOT, "words .* out with --drop k --drop t$",
    ),
    "date cell": (text("a,b\n1,2024-01-31\n3,4\n"), CCOT, "'2024-01-31'"),
    "other delimiter": (text("a;b\n1;2\n3;4\n"), ["--delimiter", ","], "pass --delimiter"),
    "long delimiter": (text(NUMBERS), ["--delimiter", "::"], "single character"),
    "open quote": (text('a,b\n1,2\n3,"4\n'), [], "quotes"),
    "underscores": (text("a,b\n1,2\n3,1_0\n"), CCOT, "words .*'1_0'"),
    "duplicate columns": (text("a,a\n1,2\n3,4\n"), [], "2 columns are named 'a'"),
    "duplicate rows": (
        text("g,a,b\nx,1,2\ny,3,4\nx,5,6\n"), [], "Column 'g' cannot name the rows: 2 cells",
    ),
    "asked for duplicates": (
        text("k,a,b\nx,1,2\nx,3,4\n"), ["--index-col", "k"], r"--index-col NAME, or omit it",
    ),
    "huge integer": (text("1,2\n3," + "9" * 400 + ".0\n"), [], "too large"),
    "number beyond all": (text("1,2\n3,1e400\n"), [], "infinite or too large"),
    "infinity": (text("1,2\n3,inf\n"), [], "infinite"),
    "missing for ccot": (text("1,2\n3,\n5,6\n"), ["--method", "ccot"], "--method transport"),
    "nothing but missing": (text(EMPTY_CELLS), [], "NaN only"),
    "no such index": (text(NUMBERS), ["--index-col", "gene"], "is not a column"),
    "index out of range": (text(NUMBERS), ["--index-col", "9"], "0 to 2"),
    "utf-16": (text(NUMBERS, "utf-16"), [], "--encoding"),
    "latin-1": (text("é,b\n1,2\n3,4\n", "latin-1"), [], "--encoding"),
    "no such encoding": (text(NUMBERS), ["--encoding", "klingon"], "klingon"),
    "binary junk": (raw("in.csv", bytes(range(256)) * 9), [], "pass"),
    "zeros": (raw("in.csv", b"\0" * 4096), [], "pass"),
    "picture": (raw("in.png", b"\x89PNG\r\n\x1a\n" + b"\xff" * 64), [], "known format"),
    "spreadsheet": (raw("in.xlsx", b"PK\x03\x04"), [], "not a readable Excel file|ccot.tables"),
    "truncated gzip": (raw("in.csv.gz", gzip.compress(NUMBERS.encode() * 99)[:40]), [], "ended"),
    "too many clusters": (text(NUMBERS), ["--n-row-clusters", "99"], "pass at most 9"),
    "negative counts": (text("1,2\n-3,4\n"), ["--family", "poisson"], 'family="gaussian"'),
    "no zeros and ones": (text(NUMBERS), ["--family", "bernoulli"], "threshold"),
    # long tables
    "listed twice": (text("a,b,1\na,b,2\n"), ["--long", "--aggregate", "most"], "sum, mean, cou"),
    "text value": (text("a,b,1\nc,d,x\n"), ["--long"], "value 'x' is not a number"),
    "short triple": (text("a,b,1\nc,d\n"), ["--long"], "line 2 has 2 cells"),
    "missing value": (text("a,b,1\nc,d,\n"), ["--long"], "--unlisted missing"),
    "no such long column": (text("r,c,v\na,b,1\n"), ["--long-columns", "r,c,w"], "w is not a col"),
    "unheard unlisted": (text("a,b,1\nc,d,2\n"), ["--long", "--unlisted", "x"], "zero, missing"),
    "long matrix": (made("in.npy", lambda p: np.save(p, np.eye(3))), ["--long"], "omit --long"),
    # NumPy and SciPy
    "truncated npy": (made("in.npy", lambda p: np.save(p, np.eye(9)), 0.5), [], "again"),
    "npy that lies": (raw("in.npy", npy((10**12, 10))), [], "again"),
    "objects": (
        made("in.npy", lambda p: np.save(p, np.array([[{}]]), allow_pickle=True)), [], "again",
    ),
    "vector": (made("in.npy", lambda p: np.save(p, np.ones(9))), [], "rows x columns"),
    "cube": (made("in.npy", lambda p: np.save(p, np.ones((2, 2, 2)))), [], "rows x columns"),
    "complex": (made("in.npy", lambda p: np.save(p, 1j * np.eye(3))), [], "float64"),
    "words": (made("in.npy", lambda p: np.save(p, np.array([["a"]]))), [], "float64"),
    "no npz": (raw("in.npz", b"junk" * 9), [], "but is not such a file"),
    "truncated npz": (made("in.npz", lambda p: sp.save_npz(p, sp.eye(9)), 0.7), [], "again"),
    "many arrays": (
        made("in.npz", lambda p: np.savez(p, a=np.eye(3), b=np.eye(3))), [], "save only the matrix",
    ),
    "npz that lies": (
        made("in.npz", archive({"a.npy": npy((10**15,))})), [], "memory|again|GB",
    ),
    "bad indices": (made("in.npz", bad_sparse), [], "again"),
    # Matrix Market
    "truncated mtx": (
        made("in.mtx", lambda p: scipy.io.mmwrite(p, sp.eye(99, format="coo")), 0.4), [], "again",
    ),
    "mtx that lies": (raw("in.mtx", (MARKET + "9 9 999999999\n1 1 1\n").encode()), [], "too short"),
    "mtx index": (raw("in.mtx", (MARKET + "2 2 1\n5 5 1.0\n").encode()), [], "again"),
    "mtx header": (raw("in.mtx", b"%%MatrixMarket nonsense\n1 1 1\n"), [], "again"),
    "complex mtx": (
        raw("in.mtx", (MARKET.replace("real", "complex") + "2 2 1\n1 1 1 1\n").encode()), [],
        "real parts",
    ),
    # Parquet and AnnData
    "truncated parquet": (made("in.parquet", FRAME.to_parquet, 0.6), [], "again"),
    "parquet text": (
        made("in.parquet", FRAME.assign(t="x").to_parquet), CCOT, "words .*'t'.* --drop t$",
    ),
    "empty parquet": (made("in.parquet", FRAME[:0].to_parquet), [], "is empty"),
    "truncated h5ad": (
        made("in.h5ad", lambda p: anndata.AnnData(np.eye(50)).write_h5ad(p), 0.5), [], "again",
    ),
    "no h5ad": (made("in.h5ad", no_h5ad), [], "again|X is empty"),
    "h5ad without X": (made("in.h5ad", without_x), [], "X is empty"),
    "no such layer": (
        made("in.h5ad", lambda p: anndata.AnnData(np.eye(5)).write_h5ad(p)), ["--layer", "raw"],
        "no layer 'raw'",
    ),
}  # fmt: skip


def refused(outcome, folder, before, message):
    """One line, a remedy, no traceback, nothing written."""
    import re

    lines = outcome.stderr.splitlines()
    assert len(lines) == 1, outcome.output
    assert lines[0].startswith("error: ")
    assert re.search(message, lines[0]), lines[0]
    assert "Traceback" not in outcome.output
    assert sorted(folder.rglob("*")) == before


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", INPUTS)
def test_malformed_matrices(name, ccot, tmp_path):
    (file, build), options, message = INPUTS[name]
    path = tmp_path / file
    build(path)
    before = sorted(tmp_path.rglob("*"))
    refused(ccot("fit", file, *options, code=2), tmp_path, before, message)


def test_places_that_are_no_files(ccot, tmp_path):
    (tmp_path / "folder").mkdir()
    before = sorted(tmp_path.rglob("*"))
    refused(ccot("fit", "folder", code=2), tmp_path, before, "is a folder: pass one")
    refused(ccot("fit", "nowhere.csv", code=2), tmp_path, before, "there is no file nowhere.csv")
    refused(ccot("fit", "-", stdin="", code=2), tmp_path, before, "the input is empty")
    refused(ccot("predict", "no.ccot", "in.csv", code=2), tmp_path, before, "no file at no.ccot")
    refused(ccot("report", "folder", code=2), tmp_path, before, "folder: pass the model in it")


def test_links_that_lead_nowhere_and_a_closed_input(ccot, tmp_path, monkeypatch):
    (tmp_path / "in.csv").write_text("1,2\n3,4\n5,7\n")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "gone").symlink_to("nowhere")
    before = sorted(tmp_path.rglob("*"))
    for name in ("loop", "gone"):
        told = f"{name} is not a folder, or is a broken link"
        refused(ccot("fit", "in.csv", "-q", "--out", name, code=2), tmp_path, before, told)
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InputError, match="the standard input is closed"):
        read_matrix("-")


def tree(version=1, values=None):
    content = {"format": "ccot-model", "version": version, "ccot": "9.0", "values": values}
    return json.dumps(content)


MODELS = {
    "later version": (made("m.ccot", archive({"model.json": tree(99)})), "pip install --upgrade"),
    "zip bomb": (
        made(
            "m.ccot",
            archive(
                {"model.json": tree(), "arrays/0.npy": b"\0" * 10**6},
                compression=zipfile.ZIP_DEFLATED,
            ),
        ),
        "damaged.*compressed",
    ),
    "path traversal": (
        made("m.ccot", archive({"model.json": tree(), "../../evil.py": "1"})),
        "damaged.*unexpected member",
    ),
    "pickle": (raw("m.ccot", pickle.dumps(print)), "not a model file"),
    "text": (raw("m.ccot", b"a,b\n1,2\n"), "not a model file"),
    "archive": (made("m.ccot", archive({"x": "y"})), "not a model file"),
    "no estimator": (made("m.ccot", archive({"model.json": tree(values=3)})), "holds no estimator"),
    "unknown type": (
        made("m.ccot", archive({"model.json": tree(values={"type": "os.system", "fields": {}})})),
        "unknown type 'os.system'",
    ),
    "array that lies": (
        made(
            "m.ccot",
            archive({"model.json": tree(values={"array": 0}), "arrays/0.npy": npy((10**12,))}),
        ),
        "damaged.*shorter than its header says",
    ),
}


@pytest.mark.parametrize("command", [("predict", "m.ccot", "in.csv"), ("report", "m.ccot")])
@pytest.mark.parametrize("name", MODELS)
def test_malformed_models(name, command, ccot, tmp_path):
    (file, build), message = MODELS[name]
    build(tmp_path / file)
    (tmp_path / "in.csv").write_text(NUMBERS)
    before = sorted(tmp_path.rglob("*"))
    refused(ccot(*command, code=2), tmp_path, before, message)


def test_damaged_models(ccot, tmp_path, model_file):
    whole = model_file.read_bytes()
    (tmp_path / "in.csv").write_text(NUMBERS)
    (tmp_path / "m.ccot").write_bytes(whole[: len(whole) // 2])
    before = sorted(tmp_path.rglob("*"))
    refused(ccot("predict", "m.ccot", "in.csv", code=2), tmp_path, before, "is damaged")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (NUMBERS, "X has 3 features, but .* expecting 30"),
        ("a,b\n1,2\n3,4\n", "30 of the model's 30 columns are not in the input"),
        ("s0,s1\n1,2\n", r"28 of the model's 30 columns are not in the input \(the first: 's2'\)"),
    ],
)
def test_rows_that_do_not_fit_the_model(content, message, ccot, tmp_path, model_file):
    (tmp_path / "in.csv").write_text(content)
    before = sorted(tmp_path.rglob("*"))
    refused(ccot("predict", model_file, "in.csv", code=2), tmp_path, before, message)


def test_there_are_fifty():
    assert len(INPUTS) + len(MODELS) >= 50
