"""The smallest use of each part of the experiments."""

from ccot.experiments.bench.cases import (
    column_cases,
    draws_case,
    nonzero_cases,
    paper_cases,
    row_cases,
)
from ccot.experiments.bench.facts import commit, machine_facts, versions
from ccot.experiments.bench.measure import Limits, measure
from ccot.experiments.bench.rivals import rivals
from ccot.experiments.bench.suite import Profile, profiles, run_suite
from ccot.experiments.bench.summary import Cell, Growth, fit_exponent, growth, summarise
from ccot.experiments.protocol import Protocol, Task, run_task
from ccot.experiments.sections import draw_blocks, draw_scalings, make_table1, write_part
from ccot.experiments.store import TrialStore, load_trials, run_protocol
from ccot.experiments.summary import summarise as summarise_trials
from ccot.experiments.table2 import make_table2
from ccot.experiments.tables import Table, Text


def test_cases():
    assert [case.name for case in paper_cases()][:2] == ["D1 published", "D2 published"]
    assert draws_case(100).only == ("CCOT", "POT, plain loop", "POT, log-domain loop")
    assert [case.shape for case in row_cases((100, 1000), 20)] == [(100, 20), (1000, 20)]
    assert [case.shape for case in column_cases((20, 40), 100)] == [(100, 20), (100, 40)]
    shapes = [case.shape for case in nonzero_cases((20_000, 40_000))]
    assert shapes == [(1000, 1000), (2000, 1000)]


def test_facts(monkeypatch):
    facts = machine_facts("ccot bench")
    assert (facts["command"], sorted(facts["versions"])[0]) == ("ccot bench", "POT")
    assert "numpy=" in versions()
    commit.cache_clear()
    monkeypatch.setenv("CCOT_COMMIT", "abc")
    assert commit() == "abc"
    commit.cache_clear()


def test_measure():
    seen = measure(row_cases((60,), 40)[0], rivals()["K-means"], 0, Limits(10, 2))
    assert (seen["status"], seen["error"], seen["row_clusters"]) == ("done", 0.0, 3)


def test_rivals():
    uninformed = [name for name, rival in rivals().items() if not rival.informed]
    assert uninformed[:2] == ["CCOT", "CCOTGW"]


def test_suite(tmp_path):
    assert list(profiles()) == ["smoke", "standard", "large"]
    assert max(case.size for case in profiles()["standard"].cases) == 1000000
    tiny = Profile("tiny", tuple(row_cases((60, 80), 40)), 1, 1, Limits(10, 2))
    result = run_suite(tiny, tmp_path / "suite.json", only=["K-means"])
    errors = [(trial["case"], trial["error"]) for trial in result["trials"]]
    assert errors == [("60 rows", 0.0), ("80 rows", 0.0)]


def test_summary_of_the_suite():
    done = {"status": "done", "processor_seconds": 1.0, "megabytes": 5.0, "error": 0.0}
    trial = {"case": "D1", "rival": "ours"}
    result = {
        "cases": [{"name": "D1", "axis": "paper", "size": 0}],
        "rivals": [{"name": "ours"}],
        "trials": [
            trial | done | {"row_clusters": 3, "column_clusters": 3},
            trial | {"status": "failed: so"},
        ],
    }
    [cell] = summarise(result)
    assert (cell.status, cell.seconds, cell.numbers) == ("failed: so", 1.0, ("3 x 3",))


def test_growth():
    cells = [
        Cell(f"{n} rows", "rows", "ours", n, "done", n / 100, None, 0.0, ("3 x 3",))
        for n in (100, 200, 400)
    ]
    assert growth(cells, "ours", "rows", "seconds") == Growth((100, 200, 400), (1, 2, 4), 1.0)
    assert fit_exponent([1, 10, 100, 1000], [5, 1, 10, 100]) == 1.0
    assert fit_exponent([1, 10], [1, 10]) is None


def test_runner_and_store(tmp_path):
    small = Protocol(n_trials=1, n_init=1, overlaps=("published",), methods=("K-means",))
    trials = run_protocol(small, tmp_path / "run")
    assert [trial.data_set for trial in trials] == ["D1", "D2", "D3", "D4"]
    with TrialStore(tmp_path / "store") as store:
        store.add(trials[0])
        store.checkpoint()
        assert trials[0].task in store.trials
    assert load_trials("no/such/folder") == []


def test_tables_of_a_trial():
    cells = summarise_trials(
        [run_task(Task("D1", "published", 0, name, 2, None)) for name in ("K-means", "DKM")]
    )
    scores = [(cell.method, cell.every.mean, cell.every.bold) for cell in cells]
    assert scores == [("K-means", 0.0, True), ("DKM", 0.0, True)]
    shown = [row[1].plain for row in make_table2(cells).rows]
    assert shown == [".018 ± .003", ".000 ± .000"]
    assert make_table1().rows[1][:3] == ("D1, here", "600 × 300", "3 × 3")


def test_markdown():
    rows = [("D1", Text(".018 ± .003", bold=True))]
    table = Table("t", "Errors", ("set", "K-means"), rows)
    body = "| set | K-means |\n| --- | ---: |\n| D1 | **.018 ± .003** |"
    assert table.markdown() == f"**Errors**\n\n{body}"


def test_a_part(tmp_path):
    write_part("table1", Protocol(), [], tmp_path)
    names = sorted(file.name for file in tmp_path.iterdir())
    assert names == ["table1.csv", "table1.html", "table1.md", "table1.tex"]


def test_figures():
    few = Protocol(overlaps=["published"], n_samplings=8)
    titles = [panel.get_title() for panel in draw_blocks(few).axes]
    assert titles == ["D2, σ = 0.015", "D3, σ = 0.02", "D4, σ = 0.015"]
    titles = [panel.get_title() for panel in draw_scalings(few).axes]
    assert titles == ["α, published: 2 steps", "β, published: 4 steps"]
