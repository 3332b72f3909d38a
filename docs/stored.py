"""Stored results, tables of them, and the runs that made them."""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

PROJECT = Path(__file__).parents[1]
RESULTS = PROJECT / "benchmarks" / "results"
# Pages name what the scripts in benchmarks name: these are found wherever a page is made.
sys.path.append(str(PROJECT))
# More runs than this are counted, not listed.
MANY_RUNS = 4


def load(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def listed(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a table of text: all columns are aligned left."""
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def source(name: str, result: dict, note: str = "", rows: Iterable[dict] | None = None) -> str:
    """Return the note under a table and the runs that made the table.

    Parameters
    ----------
    name : str
        Of the file in ``benchmarks/results``.
    result : dict
        What the file holds.
    note : str, optional
        What the table shows.
    rows : iterable of dict, optional
        The stored rows, of a script that can measure some of them and keep the others. Without
        them one run has made the whole file.
    """
    runs = run_of(result["facts"]) if rows is None else runs_of(result["facts"], list(rows))
    return f"\n\n{note} Stored in `benchmarks/results/{name}.json`; {runs}.".replace(
        "\n\n ", "\n\n"
    )


def run_of(run: dict) -> str:
    """Return a run in words: its command, date and commit."""
    commit = f"commit `{run['commit']}`" if run.get("commit") else "commit not recorded"
    return f"made by `{plain(run['command'])}`, {run['date']}, {commit}"


def runs_of(facts: dict, rows: list[dict]) -> str:
    """Return in words which runs made how many of the rows."""
    known = Counter(run_of(row["run"]) for row in rows if "run" in row)
    if len(known) == 1 and known.total() == len(rows):
        return next(iter(known))
    if known.total() == len(rows) and len(known) > MANY_RUNS:
        return in_short([row["run"] for row in rows])
    said = [f"{count} of {len(rows)} rows {run}" for run, count in known.items()]
    if unknown := len(rows) - known.total():
        which = "all rows" if unknown == len(rows) else f"{unknown} of {len(rows)} rows"
        script = " ".join(facts["command"].split()[:3])
        said.append(
            f"{which} made by one or more runs of `{script}` that were not recorded row by row"
            + ("" if known else f", the last on {facts['date']}")
        )
    return "; ".join(said)


def in_short(runs: list[dict]) -> str:
    """Return many runs of one script in words: how many, when and at which commits."""
    dates = sorted({run["date"] for run in runs})
    commits = dict.fromkeys(f"`{run['commit'] or 'not recorded'}`" for run in runs)
    when = f"on {dates[0]}" if len(dates) == 1 else f"between {dates[0]} and {dates[-1]}"
    script = " ".join(runs[0]["command"].split()[:3])
    return (
        f"made by {len({run_of(run) for run in runs})} runs of `{script}`, which the file names "
        f"row by row, {when}, at the commits {', '.join(commits)}"
    )


def plain(command: str) -> str:
    """Return a command without paths of the machine that it was run on."""
    return re.sub(r"(?<= )/\S+", "PATH", command)
