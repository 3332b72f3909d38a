"""Mutants of the numeric core, and which of them the tests notice.

`mutmut` changes one thing at a time: an operator, a number, an argument, a default. A mutant is
killed when one of the tests that reach the changed function fails, or no longer ends.
What is not mutated: messages of errors, assertions (``strict=True`` of zip is one), docstrings,
annotations, properties, constants of modules.
The examples in docstrings and tests of more than half a second do not take part: what they alone
would notice counts as unnoticed.

Survivors carry a reason from `mutants.toml` beside this file: why no test can, or should, tell
them from the original. Those without one are what the tests have yet to notice.
"""

import argparse
import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

from mutmut.configuration import config
from mutmut.mutation.file_mutation import mutate_file_contents

from benchmarks.record import RESULTS, load, of_this_run, store

PROJECT = Path(__file__).parents[1]
REASONS = Path(__file__).with_name("mutants.toml")

# What is mutated together, and the tests that should notice: fast ones, close to the code.
GROUPS = {
    "metrics": (
        ["metrics.py"],
        ["test_metrics.py", "property/test_metrics_properties.py", "golden/test_metrics_golden.py"],
    ),
    "consensus": (
        ["scalings/consensus.py"],
        ["scalings/test_consensus.py", "property/test_consensus_properties.py"],
    ),
    "steps": (["scalings/steps.py"], ["scalings/test_steps.py"]),
    "jumps": (
        ["scalings/jumps.py"],
        [
            "scalings/test_jumps.py",
            "property/test_jumps_properties.py",
            "golden/test_ccot_gw_golden.py::test_detector_is_the_authors",
        ],
    ),
    "draws": (
        ["scalings/costs.py", "scalings/sampling.py"],
        ["scalings/test_costs.py", "scalings/test_sampling.py"],
    ),
    "gromov": (
        ["transport/gromov.py"],
        [
            "transport/test_gromov.py",
            "golden/test_ccot_gw_golden.py::test_every_intermediate_is_the_authors[small_s0_g1_l2]",
            "golden/test_ccot_gw_golden.py::test_every_intermediate_is_the_authors[small_s0_g1_kl]",
        ],
    ),
    "low_rank": (
        ["transport/low_rank.py"],
        ["transport/test_low_rank.py"],
    ),
    "sinkhorn": (
        ["transport/sinkhorn.py"],
        [
            "transport/test_sinkhorn.py",
            "transport/test_extend.py",
            "property/test_sinkhorn_properties.py",
        ],
    ),
    "families": (["blocks/families.py"], ["blocks/test_families.py", "blocks/test_problem.py"]),
    "hierarchy": (["blocks/hierarchy.py"], ["blocks/test_hierarchy.py", "blocks/test_scale.py"]),
    "criteria": (["blocks/criteria.py"], ["blocks/test_criteria.py", "blocks/test_scale.py"]),
    "select": (["blocks/select.py"], ["blocks/test_select.py", "blocks/test_device.py"]),
    "spectrum": (
        ["blocks/spectrum.py"],
        ["blocks/test_spectrum.py", "blocks/test_device.py"],
    ),
    "placement": (["blocks/placement.py"], ["blocks/test_placement.py", "blocks/test_scale.py"]),
    "preparation": (
        ["blocks/preparation.py"],
        ["blocks/test_preparation.py", "blocks/test_units.py"],
    ),
    "problem": (
        ["blocks/axes.py", "blocks/problem.py"],
        [
            "blocks/test_problem.py",
            "blocks/test_products.py",
            "blocks/test_hierarchy.py",
            "blocks/test_start.py",
            "blocks/test_device.py",
            "blocks/test_scale.py",
            "property/test_blocks_properties.py",
        ],
    ),
    "sweep": (
        ["blocks/sweep.py"],
        [
            "blocks/test_sweep.py",
            "blocks/test_device.py",
            "property/test_blocks_properties.py",
        ],
    ),
    "tap": (["blocks/tap.py"], ["blocks/test_tap.py", "blocks/test_criteria.py"]),
    "start": (["blocks/start.py"], ["blocks/test_start.py", "blocks/test_device.py"]),
    "refine": (
        ["blocks/refine.py"],
        ["blocks/test_refine.py", "blocks/test_device.py", "blocks/test_scale.py"],
    ),
    "fit": (
        ["blocks/fit.py"],
        ["blocks/test_fit_pieces.py", "blocks/test_sampled.py", "blocks/test_device.py"],
    ),
    "streaming": (["blocks/streaming.py"], ["blocks/test_streaming_pieces.py"]),
}

# Lines whose expressions are left alone.
NOT_MUTATED = [r"^\s*raise ", r"^\s*assert "]


def run_group(folder: Path, files: list[str], tests: list[str], again: bool) -> list[dict]:
    """Make the mutants of some files in a copy of the project, and run the tests on each."""
    known = read_verdicts(folder) if again else {}
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("src", "tests"):
        shutil.copytree(PROJECT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROJECT / "pyproject.toml", folder)
    shutil.copy(Path(__file__).with_name("mutation_runner.py"), folder)
    mutants = {file: mutate(folder / "src" / "ccot" / file) for file in files}
    every = {name: change for file in files for name, change in mutants[file].items()}
    # A mutant that was killed in the last run is not tried again while its function is the same.
    dead = {name: "killed" for name in every if known.get(every[name]["text"]) == "killed"}
    found = dead | run_tests(folder, [name for name in every if name not in dead], tests)
    kept = {every[name]["text"]: verdict for name, verdict in found.items()}
    _verdicts_of(folder).write_text(json.dumps(kept))
    return [summarise(file, mutants[file], found) for file in files]


def read_verdicts(folder: Path) -> dict[str, str]:
    path = _verdicts_of(folder)
    return json.loads(path.read_text()) if path.exists() else {}


def _verdicts_of(folder: Path) -> Path:
    """Beside the folder, which is made anew: a run that is stopped takes nothing away."""
    return folder.with_suffix(".json")


def mutate(path: Path) -> dict[str, dict]:
    """Put mutants beside the functions of a file; return what each of them changes, and where."""
    config().do_not_mutate_patterns = NOT_MUTATED
    source = path.read_text()
    path.write_text(mutate_file_contents(path.name, source).code)
    module = ".".join(path.with_suffix("").parts[path.parts.index("ccot") :])
    changes = read_changes(source, path.read_text())
    return {
        f"{module}.{name}": change for name, change in changes.items() if not only_asserts(change)
    }


def run_tests(folder: Path, mutants: list[str], tests: list[str]) -> dict[str, str]:
    """Return killed, timeout, survived or untested for every mutant."""
    (folder / "mutants.json").write_text(json.dumps(mutants))
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "HYPOTHESIS_PROFILE": "mutation",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONPATH": os.pathsep.join([str(folder / "src"), str(folder)]),
    }
    # Other tracebacks cost more than most tests: they parse the file, and mutants make it large.
    options = ["-q", "--tb=native", "-m", "not slow", "-p", "mutation_runner"]
    options += ["-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options, *(f"tests/{test}" for test in tests)]
    subprocess.run(command, cwd=folder, env=environment, check=True)
    return json.loads((folder / "verdicts.json").read_text())


def read_changes(source: str, mutated: str) -> dict[str, dict]:
    """Return what each mutant changes, and where."""
    functions, originals = read_functions(mutated), read_functions(source)
    changes = {}
    for mutant, (_, lines) in functions.items():
        mangled, found, number = mutant.partition("__mutmut_")
        if "." in mutant or not found or number == "orig":
            continue
        name = mangled.removeprefix("x_").removeprefix("xǁ").replace("ǁ", ".")
        before = functions[f"{mangled}__mutmut_orig"][1]
        # The first line names the function, differently in every mutant.
        at = next((i for i in range(1, len(before)) if lines[i : i + 1] != before[i : i + 1]), 0)
        tail = next((i for i in range(len(before) - at) if lines[-1 - i] != before[-1 - i]), 0)
        changes[mutant] = {
            "line": originals[name][0] + at,
            "function": name,
            "removed": text(before[at : len(before) - tail], mangled),
            "added": text(lines[at : len(lines) - tail], mangled),
            "text": text(lines, mangled),
        }
    return changes


def read_functions(source: str) -> dict[str, tuple[int, list[str]]]:
    """Return first line and text of every function, methods as ``Class.method`` too."""
    lines, found = source.splitlines(), {}

    def visit(nodes: list[ast.stmt], prefix: str) -> None:
        for node in nodes:
            if isinstance(node, ast.FunctionDef):
                span = node.lineno, lines[node.lineno - 1 : node.end_lineno]
                found[prefix + node.name] = found[node.name] = span
            elif isinstance(node, ast.ClassDef):
                visit(node.body, f"{node.name}.")

    visit(ast.parse(source).body, "")
    return found


def text(lines: list[str], mangled: str) -> str:
    joined = " ".join(line.strip() for line in lines)
    return re.sub(rf"def {mangled}__mutmut_\w+\(", "def (", joined)


def only_asserts(change: dict) -> bool:
    """Return True if a mutant only drops a check that iterables are equally long."""
    removed, added = (
        re.sub(r",? ?strict=\w+", "", change[side]).replace(", )", ")")
        for side in ("removed", "added")
    )
    return removed == added


def summarise(file: str, changes: dict[str, dict], verdicts: dict[str, str]) -> dict:
    counts = Counter(verdicts[mutant] for mutant in changes)
    return {
        "file": f"src/ccot/{file}",
        "mutants": len(changes),
        "killed": counts["killed"],
        "timeout": counts["timeout"],
        "survived": counts["survived"] + counts["untested"],
        "share": (counts["killed"] + counts["timeout"]) / max(len(changes), 1),
        "survivors": [
            {key: change[key] for key in ("line", "function", "removed", "added")}
            for mutant, change in changes.items()
            if verdicts[mutant] in ("survived", "untested")
        ],
    }


def with_reasons(files: list[dict]) -> list[dict]:
    """Put today's reasons beside the survivors; those of code that is gone keep theirs."""
    reasons = {
        (entry["file"], mutant): entry["reason"]
        for entry in read_reasons()
        for mutant in entry["mutants"]
    }
    for file in files:
        for mutant in file["survivors"]:
            known = mutant.get("reason")
            mutant["reason"] = reasons.get((file["file"], key(mutant)), known)
        file["explained"] = sum(mutant["reason"] is not None for mutant in file["survivors"])
    return files


def key(mutant: dict) -> str:
    """Return how `mutants.toml` names a mutant."""
    return f"{mutant['function']}: {mutant['removed']} -> {mutant['added']}"


def read_reasons() -> list[dict]:
    return tomllib.loads(REASONS.read_text(encoding="utf-8"))["survivors"]


def is_there(file: str, mutant: str) -> bool:
    """Return True if the code that a mutant changes is still in the file."""
    path = PROJECT / file
    name, _, change = mutant.partition(": ")
    found = read_functions(path.read_text(encoding="utf-8")) if path.exists() else {}
    if name not in found:
        return False
    code = text(found[name][1], "").replace(f"def {name.rpartition('.')[2]}(", "def (")
    # An arrow may also be that of an annotation.
    arrows = [arrow.start() for arrow in re.finditer(" -> ", change)]
    return any(change[:arrow] in code for arrow in arrows)


def prune() -> None:
    """Take the mutants out of `mutants.toml` whose code is gone."""
    head = REASONS.read_text(encoding="utf-8").partition("[[")[0]
    parts = []
    for entry in read_reasons():
        kept = [mutant for mutant in entry["mutants"] if is_there(entry["file"], mutant)]
        if kept:
            names = (f"  {json.dumps(mutant, ensure_ascii=False)},\n" for mutant in kept)
            parts.append(
                f'[[survivors]]\nfile = "{entry["file"]}"\n'
                f"reason = {json.dumps(entry['reason'], ensure_ascii=False)}\n"
                f"mutants = [\n{''.join(names)}]\n"
            )
    REASONS.write_text(head + "\n".join(parts), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("groups", nargs="*", help=f"of {', '.join(GROUPS)}; all by default")
    parser.add_argument("--reasons", action="store_true", help="only look up the reasons again")
    parser.add_argument(
        "--prune", action="store_true", help="only drop reasons of code that is gone"
    )
    parser.add_argument("--again", action="store_true", help="leave out who was killed last time")
    parser.add_argument("--work", type=Path, default=PROJECT / "build" / "mutation")
    arguments = parser.parse_args()
    if arguments.prune:
        prune()
    elif arguments.reasons:
        keep([])
    else:
        for group in arguments.groups or GROUPS:
            keep(run_group(arguments.work.resolve() / group, *GROUPS[group], arguments.again))


def keep(judged: list[dict]) -> None:
    """Store these files in place of what was known of them, and print what is unexplained."""
    known = load("mutation")["files"] if (RESULTS / "mutation.json").exists() else []
    files = {file["file"]: file for file in [*known, *map(of_this_run, judged)]}
    store("mutation", {"files": with_reasons([files[name] for name in sorted(files)])})
    for file in judged or files.values():
        print(f"{file['share']:6.1%} of {file['mutants']:4} {file['file']}")
        for mutant in file["survivors"]:
            if mutant["reason"] is None:
                print(f"       line {mutant['line']}, {key(mutant)}", flush=True)


if __name__ == "__main__":
    main()
