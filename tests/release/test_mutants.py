"""Reasons for mutants that no test notices are about code that exists."""

import pytest

pytest.importorskip("mutmut")

from benchmarks import mutation


def test_every_reason_names_a_function_that_exists():
    known = {}
    for entry in mutation.read_reasons():
        path = mutation.PROJECT / entry["file"]
        assert path.exists(), entry["file"]
        known[path] = mutation.read_functions(path.read_text(encoding="utf-8"))
        gone = {mutant.partition(":")[0] for mutant in entry["mutants"]} - set(known[path])
        assert not gone, f"{entry['file']}: run `python -m benchmarks.mutation --prune`"


@pytest.fixture
def reasons(tmp_path, monkeypatch):
    (tmp_path / "a.py").write_text(
        "class Plan:\n  def rows(self, n) -> int:\n    return max(\n      n, 1\n    )\n"
    )
    path = tmp_path / "mutants.toml"
    monkeypatch.setattr(mutation, "PROJECT", tmp_path)
    monkeypatch.setattr(mutation, "REASONS", path)

    def write(*entries):
        blocks = [
            f'[[survivors]]\nfile = "{file}"\nreason = "so"\nmutants = [\n  "{mutant}",\n]\n'
            for file, mutant in entries
        ]
        path.write_text("# Why.\n\n" + "\n".join(blocks))
        return path.read_text()

    return write


HERE = "a.py", "Plan.rows: return max( n, 1 ) -> return max( n, 2 )"


def test_reasons_of_code_that_is_there_stay_as_they_are(reasons):
    text = reasons(HERE, ("a.py", "Plan.rows: def (self, n) -> int: -> def (self, n) -> float:"))
    mutation.prune()
    assert mutation.REASONS.read_text() == text


def test_reasons_of_code_that_is_gone_are_dropped(reasons):
    reasons(
        ("gone.py", "rows: return 1 -> return 2"),
        ("a.py", "columns: return 1 -> return 2"),
        ("a.py", "Plan.rows: return min( n, 1 ) -> return min( n, 2 )"),
        HERE,
    )
    mutation.prune()
    assert mutation.REASONS.read_text() == reasons(HERE)


def test_a_survivor_keeps_the_reason_it_was_stored_with(reasons):
    reasons(HERE)
    change = {"function": "Plan.columns", "removed": "return 1", "added": "return 2"}
    files = [{"file": "a.py", "survivors": [{**change, "reason": "was so"}, dict(change)]}]
    (found,) = mutation.with_reasons(files)
    assert [mutant["reason"] for mutant in found["survivors"]] == ["was so", None]
    assert found["explained"] == 1
