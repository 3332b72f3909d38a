"""Print the changelog's entry of a release: ``python -m tools.changelog --tag v0.1.0``.

Fails where the tag is not the version in ``src/ccot/_version.py``, or has no dated entry.
"""

import argparse
import re
import sys

from tools.metadata import PROJECT, read_version, release_date

KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def entry(changelog: str, version: str) -> str:
    """Return what stands under the head of a version, '' if there is none."""
    pattern = rf"^## \[{re.escape(version)}\].*?\n(.*?)(?=^## |^\[.+?\]: |\Z)"
    found = re.search(pattern, changelog, flags=re.DOTALL | re.MULTILINE)
    return found[1].strip() if found else ""


def problems(tag: str, version: str, changelog: str) -> list[str]:
    told = []
    if tag != f"v{version}":
        told.append(f"the tag is {tag}, the version {version}")
    if release_date(version, changelog) is None:
        told.append(f"CHANGELOG.md has no head '## [{version}] - YEAR-MONTH-DAY'")
    if not entry(changelog, version):
        told.append(f"CHANGELOG.md says nothing about {version}")
    return told


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tag", required=True)
    tag = parser.parse_args().tag
    changelog, version = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8"), read_version()
    found = problems(tag, version, changelog)
    for problem in found:
        print(problem, file=sys.stderr)
    if not found:
        print(entry(changelog, version))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
