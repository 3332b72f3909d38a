"""One run of the suite: every case, every rival, in turns, and a file that keeps what was seen."""

import json
import os
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ccot.experiments.bench import cases
from ccot.experiments.bench.automatic import automatic_rivals, labelled_cases
from ccot.experiments.bench.cases import Case
from ccot.experiments.bench.facts import machine_facts
from ccot.experiments.bench.measure import Limits, measure
from ccot.experiments.bench.rivals import Rival, rivals
from ccot.experiments.tables import read_asset
from ccot.persistence.atomic import write_file
from ccot.runtime.run import Progress, counted, no_progress

_CASES: dict[str, Callable[..., list[Case]]] = {
    "paper": cases.paper_cases,
    "draws": lambda n_draws: [cases.draws_case(n_draws)],
    "rows": cases.row_cases,
    "columns": cases.column_cases,
    "nonzeros": cases.nonzero_cases,
}


@dataclass(frozen=True)
class Profile:
    """How much is measured, and the limits of one fit."""

    name: str
    cases: tuple[Case, ...] = field(repr=False)  # those of one axis by growing size
    paper_seeds: int  # matrices of each of the paper's sets, or seeds of labelled ones
    repeats: int  # fits of other cases
    limits: Limits
    rivals: Callable[[], dict[str, Rival]] | None = None  # None: those of the speed suite


def profiles() -> dict[str, Profile]:
    """Return the profiles by name."""
    told = tomllib.loads(read_asset("suites.toml"))
    return {name: _profile(name, **one) for name, one in told.items()}


def _profile(name: str, cases: Any, limits: Any, **seeds: Any) -> Profile:
    every_case = (
        replace(case, only=tuple(group.get("only", case.only)))
        for group in cases
        for case in _CASES[group["axis"]](*group.get("of", ()))
    )
    return Profile(name, tuple(every_case), **seeds, limits=Limits(*limits))


def automatic_profile(folder: Path | None) -> Profile:
    """Return the profile of methods that find their own number, on labelled matrices."""
    labelled = tuple(labelled_cases(folder))
    return Profile("automatic", labelled, 1, 1, Limits(60, 8), automatic_rivals)


def run_suite(
    profile: Profile,
    path: str | Path,
    *,
    only: Sequence[str] = (),
    command: str = "",
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """Measure a profile; the file is rewritten after every case, and says if it is complete."""
    all_rivals = _take_part((profile.rivals or rivals)(), only)
    result: dict[str, Any] = {
        "facts": machine_facts(command),
        "profile": {name: getattr(profile, name) for name in ("name", "paper_seeds", "repeats")}
        | {"limits": asdict(profile.limits)},
        "complete": False,
        "rivals": [
            {"name": r.name, "package": r.package, "version": r.version, "told": r.informed}
            for r in all_rivals
        ],
        "cases": [],
        "trials": [],
    }
    # A rival that was stopped by a limit or failed is spared the larger cases of the same axis.
    out_of_race: dict[tuple, str] = {}
    for case in counted(profile.cases, "cases", progress):
        progress(case.name)
        result["cases"].append({k: getattr(case, k) for k in ("name", "axis", "size", "shape")})
        result["trials"] += _take_turns(case, all_rivals, profile, out_of_race)
        _store(result, path)
    result["facts"]["load_at_end"] = round(os.getloadavg()[0], 2)
    result["complete"] = True
    _store(result, path)
    return result


def _take_part(all_rivals: dict[str, Rival], only: Sequence[str]) -> list[Rival]:
    if unknown := [name for name in only if name not in all_rivals]:
        problem = f"unknown method {', '.join(unknown)}"
        raise ValueError(f"{problem}; choose from {', '.join(all_rivals)}")
    return [rival for name, rival in all_rivals.items() if not only or name in only]


def _take_turns(
    case: Case, entrants: Sequence[Rival], profile: Profile, out_of_race: dict[tuple, str]
) -> Iterator[dict[str, Any]]:
    """Yield the trials of a case: each rival once before any has its second go."""
    invited = [rival for rival in entrants if not case.only or rival.name in case.only]
    asked = [rival for rival in invited if case.kind in rival.kinds and rival.version is not None]
    # Errors want many matrices, times the same one many times.
    goes = [(0, repeat) for repeat in range(profile.repeats)]
    if case.axis == "paper" or case.kind == "labelled":
        goes = [(seed, 0) for seed in range(profile.paper_seeds)]
    for number, (seed, repeat) in enumerate(goes):
        # Another one begins each time, so that being first or last is no advantage.
        for rival in asked[number % len(asked) :] + asked[: number % len(asked)] if asked else ():
            key = case.axis if case.axis != "paper" else case.name, rival.name
            if key in out_of_race and number > 0:
                continue
            if key in out_of_race:
                seen = {"status": out_of_race[key]}
            else:
                seen = measure(case, rival, seed, profile.limits)
                if seen["status"] != "done":
                    out_of_race[key] = f"not asked: {seen['status']} at {case.name}"
            yield {"case": case.name, "rival": rival.name, "seed": seed, "repeat": repeat} | seen


def _store(result: dict[str, Any], path: str | Path) -> None:
    """Write the file, one trial a line."""
    rest = {key: value for key, value in result.items() if key != "trials"}
    lines = ",\n  ".join(json.dumps(trial) for trial in result["trials"])
    head = json.dumps(rest, indent=1).removesuffix("\n}")
    write_file(path, f'{head},\n "trials": [\n  {lines}\n ]\n}}\n')
