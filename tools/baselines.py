"""Compare a new run with what is stored: ``python -m tools.baselines fuzz|mutation|speed FILE``.

The stored results are those in ``benchmarks/results``. Exit code 1 says that the new run is worse:
an input that breaks a rule, a change of the code that no test notices any more, an operation that
takes more than ``--slower`` times its stored share of the reference operation.
"""

import argparse
import json
import sys
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"


def fuzz(new: dict, _: dict, __: float) -> list[str]:
    return [f"{name}: {why}" for name, seen in new["targets"].items() for why in seen["findings"]]


def mutation(new: dict, old: dict, _: float) -> list[str]:
    stored = {file["file"]: file for file in old["files"]}
    lost = []
    for file in new["files"]:
        known = {key(mutant) for mutant in stored.get(file["file"], {}).get("survivors", [])}
        lost += [f"{file['file']}, line {mutant['line']}: {mutant['added'].strip()}"
                 for mutant in file["survivors"]
                 if mutant["reason"] is None and key(mutant) not in known]  # fmt: skip
    return lost


def key(mutant: dict) -> tuple[str, str, str]:
    return mutant["function"], mutant["removed"], mutant["added"]


def speed(new: dict, old: dict, slower: float) -> list[str]:
    stored = {one["operation"]: one["ratio"] for one in old["operations"]}
    return [
        f"{one['operation']}: {one['ratio']:.2f} times the reference, stored {stored[name]:.2f}"
        for one in new["operations"]
        if (name := one["operation"]) in stored and one["ratio"] > slower * stored[name]
    ]


KINDS = {
    "fuzz": (fuzz, "fuzz.json"),
    "mutation": (mutation, "mutation.json"),
    "speed": (speed, "operations.json"),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("file", type=Path, help="result of the new run")
    parser.add_argument("--baseline", type=Path, help="default: benchmarks/results")
    parser.add_argument("--slower", type=float, default=2.0)
    arguments = parser.parse_args()
    compare, name = KINDS[arguments.kind]
    stored = json.loads((arguments.baseline or RESULTS / name).read_text(encoding="utf-8"))
    worse = compare(
        json.loads(arguments.file.read_text(encoding="utf-8")), stored, arguments.slower
    )
    print("\n".join(worse) or "no worse than what is stored")
    return int(bool(worse))


if __name__ == "__main__":
    sys.exit(main())
