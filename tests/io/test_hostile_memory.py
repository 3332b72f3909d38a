"""Peaks of memory while files are read; the benchmark of the same name has larger ones."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.hostile_memory import CASES

SIZE, NOISE = 3_000_000, 8_000_000
MEASURED = [
    "CSV: names and real values",
    "CSV: empty cells",
    "CSV: one row",
    "CSV: one row on many lines",
    "CSV: short names, all distinct",
    "long table: pairs",
    "long table: all names distinct",
    "gzip: digits",
    "Matrix Market: pattern, symmetric",
    "Matrix Market: dense, symmetric",
    "npy: int8",
    "npz: sparse int8, bsr",
    "Parquet: runs, few names",
    "Parquet: pairs in runs",
    "model: short texts",
    "model: empty lists",
    "model: many matrices of the same arrays",
]
# What small files may take in any case would hide what this is about.
PROGRAM = """
import json, sys
from pathlib import Path
from benchmarks.hostile_memory import in_this_process
from ccot.io import layout, matrix

matrix._ALWAYS, layout.MOST_CELLS = 1 << 16, 1 << 14
for what, tiny, path in json.loads(sys.argv[1]):
    print(json.dumps(in_this_process(what, Path(tiny), Path(path))), flush=True)
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux tells peaks")
def test_files_take_less_than_ten_times_their_size(tmp_path):
    pytest.importorskip("pyarrow")
    made, unfolded = [], {}
    for number, what in enumerate(MEASURED):
        tiny, path = (tmp_path / f"{name}{number}.{CASES[what].ending}" for name in ("t", "f"))
        CASES[what].make(tiny, 2000)
        unfolded[what] = CASES[what].make(path, SIZE) or path.stat().st_size
        made.append([what, str(tiny), str(path)])
    command = [sys.executable, "-c", PROGRAM, json.dumps(made)]
    ended = subprocess.run(
        command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True
    )
    for (what, _, _), line in zip(made, ended.stdout.splitlines(), strict=True):
        seen = json.loads(line)
        assert 1e6 * seen["megabytes_more"] < 10 * unfolded[what] + NOISE, (what, seen)
        if CASES[what].honest:
            assert not seen["refused"], (what, seen)
