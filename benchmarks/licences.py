"""Licences of the packages behind ccot, read from what is installed.

``python -m benchmarks.licences`` stores them for ``docs/dependencies.md``. A licence has the name
that SPDX gives it, or where a package says no more than "BSD", that.
"""

import re
from importlib.metadata import Distribution, distribution, metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchmarks.record import store

DEVELOPMENT = {"docs", "lock", "mutation", "test"}
ALLOWED = {
    "0BSD", "Apache-2.0", "BSD", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "ISC", "MIT",
    "MIT-CMU", "MPL-2.0", "PSF-2.0", "Zlib",
}  # fmt: skip
SPDX = {
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD 3-Clause License": "BSD-3-Clause",
    "BSD License": "BSD",
    "ISC License": "ISC",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
CLASSIFIER = "License :: OSI Approved :: "


def extras() -> list[str]:
    """What users may install beside ccot itself."""
    return sorted(set(metadata("ccot").get_all("Provides-Extra") or []) - DEVELOPMENT)


def packages(wanted: str) -> dict[str, Distribution]:
    """Whatever installing ``wanted`` brings here, itself included, by name."""
    found: dict[tuple[str, frozenset[str]], Distribution] = {}
    ahead = [Requirement(wanted)]
    while ahead:
        asked = ahead.pop()
        key = canonicalize_name(asked.name), frozenset(asked.extras)
        if key not in found:
            found[key] = distribution(asked.name)
            needs = map(Requirement, found[key].requires or [])
            ahead += [need for need in needs if applies(need, asked.extras)]
    return {name: package for (name, _), package in sorted(found.items(), key=lambda it: it[0][0])}


def applies(need: Requirement, asked_extras: set[str]) -> bool:
    marker = need.marker
    return marker is None or any(marker.evaluate({"extra": e}) for e in ("", *asked_extras))


def licence(package: Distribution) -> str | None:
    """SPDX expression, or None where the package tells nothing that is understood."""
    said = package.metadata
    if "License-Expression" in said:
        return said["License-Expression"]
    lines = (said.get("License") or "").strip().splitlines()[:1]
    classes = said.get_all("Classifier") or []
    lines += [line.removeprefix(CLASSIFIER) for line in classes if line.startswith(CLASSIFIER)]
    names = [SPDX.get(line.strip(), line.strip()) for line in lines]
    return next((name for name in names if is_allowed(name)), None)


def is_allowed(expression: str | None) -> bool:
    """Whether all parts of an expression are licences that bind no program that imports."""
    parts = re.sub(r" WITH \S+|[()]", "", expression or "")
    return set(re.split(" AND | OR ", parts)) <= ALLOWED


def main() -> None:
    needed_for = {name: ["ccot"] for name in packages("ccot")}
    for extra in extras():
        for name in packages(f"ccot[{extra}]"):
            if needed_for.setdefault(name, []) != ["ccot"]:
                needed_for[name].append(extra)
    del needed_for["ccot"]
    rows = []
    for name in sorted(needed_for):
        package = distribution(name)
        rows.append(
            {
                "name": name,
                "version": package.version,
                "licence": licence(package),
                "needed_for": needed_for[name],
            }
        )
    print(store("licences", {"packages": rows}))


if __name__ == "__main__":
    main()
