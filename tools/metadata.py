"""Write CITATION.cff, codemeta.json and .zenodo.json from ``pyproject.toml``.

``python -m tools.metadata`` writes the three files, and the version in the conda recipe;
``--check`` only compares them. ``--repository https://github.com/OWNER/NAME`` first puts that
address in place of the present one everywhere in the project.
"""

import argparse
import json
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

PROJECT = Path(__file__).parents[1]
TITLE = "ccot: co-clustering through optimal transport"
PAPER = {
    "title": "Co-clustering through Optimal Transport",
    "authors": [
        ("Laclau", "Charlotte"),
        ("Redko", "Ievgen"),
        ("Matei", "Basarab"),
        ("Bennani", "Younès"),
        ("Brault", "Vincent"),
    ],
    "proceedings": "Proceedings of the 34th International Conference on Machine Learning",
    "series": "Proceedings of Machine Learning Research",
    "volume": 70,
    "pages": (1955, 1964),
    "year": 2017,
    "url": "https://proceedings.mlr.press/v70/laclau17a.html",
}


@dataclass(frozen=True)
class Facts:
    """What the three files tell about the software."""

    name: str
    version: str
    date: str | None
    description: str
    licence: str
    authors: tuple[str, ...]
    keywords: tuple[str, ...]
    python: str
    urls: dict[str, str]


def read_facts(project: Path = PROJECT) -> Facts:
    told = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = read_version(project)
    return Facts(
        name=told["name"],
        version=version,
        date=release_date(version, (project / "CHANGELOG.md").read_text(encoding="utf-8")),
        description=told["description"],
        licence=told["license"],
        authors=tuple(author["name"] for author in told["authors"]),
        keywords=tuple(told["keywords"]),
        python=told["requires-python"],
        urls=told["urls"],
    )


def read_version(project: Path = PROJECT) -> str:
    text = (project / "src" / "ccot" / "_version.py").read_text(encoding="utf-8")
    return re.findall(r'^__version__ = "(.+)"$', text, flags=re.MULTILINE)[0]


def release_date(version: str, changelog: str) -> str | None:
    """Day on which a version was released; None while the changelog has no entry for it."""
    heads = dict(re.findall(r"^## \[(.+?)\] - (\d{4}-\d\d-\d\d)$", changelog, flags=re.MULTILINE))
    return heads.get(version)


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def citation(facts: Facts) -> str:
    released = [f"date-released: {facts.date}"] if facts.date else []
    people = [
        line
        for family, given in PAPER["authors"]
        for line in (f"    - family-names: {family}", f"      given-names: {given}")
    ]
    lines = [
        "# Written by `python -m tools.metadata`.",
        "cff-version: 1.2.0",
        "message: Please cite the software, and for CCOT and CCOT-GW the paper that proposed them.",
        "type: software",
        f"title: {quoted(TITLE)}",
        f"abstract: {quoted(facts.description)}",
        "authors:",
        *(f"  - name: {author}" for author in facts.authors),
        f"version: {facts.version}",
        *released,
        f"license: {facts.licence}",
        f"url: {facts.urls['Homepage']}",
        f"repository-code: {facts.urls['Repository']}",
        "keywords:",
        *(f"  - {keyword}" for keyword in facts.keywords),
        "preferred-citation:",
        "  type: conference-paper",
        f"  title: {PAPER['title']}",
        "  authors:",
        *people,
        f"  collection-title: {PAPER['proceedings']}",
        f"  volume: {PAPER['volume']}",
        f"  start: {PAPER['pages'][0]}",
        f"  end: {PAPER['pages'][1]}",
        f"  year: {PAPER['year']}",
        f"  url: {PAPER['url']}",
    ]
    return "\n".join(lines) + "\n"


def codemeta(facts: Facts) -> str:
    people = [{"@type": "Organization", "name": author} for author in facts.authors]
    told = {
        "@context": "https://w3id.org/codemeta/3.0",
        "@type": "SoftwareSourceCode",
        "name": facts.name,
        "description": facts.description,
        "version": facts.version,
        "license": f"https://spdx.org/licenses/{facts.licence}",
        "author": people,
        "maintainer": people,
        "keywords": list(facts.keywords),
        "programmingLanguage": "Python",
        "runtimePlatform": f"Python {facts.python}",
        "codeRepository": facts.urls["Repository"],
        "issueTracker": facts.urls["Issues"],
        "url": facts.urls["Homepage"],
        "softwareHelp": facts.urls["Documentation"],
        "releaseNotes": facts.urls["Changelog"],
        "referencePublication": {
            "@type": "ScholarlyArticle",
            "name": PAPER["title"],
            "datePublished": str(PAPER["year"]),
            "url": PAPER["url"],
        },
    }
    if facts.date:
        told["datePublished"] = facts.date
    return json.dumps(told, indent=2, ensure_ascii=False) + "\n"


def zenodo(facts: Facts) -> str:
    told = {
        "title": TITLE,
        "upload_type": "software",
        "description": facts.description,
        "version": facts.version,
        "license": facts.licence,
        "access_right": "open",
        "creators": [{"name": author} for author in facts.authors],
        "keywords": list(facts.keywords),
        "related_identifiers": [
            {"identifier": PAPER["url"], "relation": "cites", "scheme": "url"},
            {"identifier": facts.urls["Repository"], "relation": "isSupplementTo", "scheme": "url"},
        ],
    }
    return json.dumps(told, indent=2, ensure_ascii=False) + "\n"


def recipe(project: Path, facts: Facts) -> str:
    """Return the conda recipe with the version of the release that is next."""
    text = (project / RECIPE).read_text(encoding="utf-8")
    number = re.match(r"\d+\.\d+\.\d+", facts.version)
    assert number, f"version {facts.version} does not begin with three numbers"
    return re.sub(r'^  version: ".*"$', f'  version: "{number[0]}"', text, flags=re.MULTILINE)


RECIPE = "conda/recipe.yaml"
FILES = {"CITATION.cff": citation, "codemeta.json": codemeta, ".zenodo.json": zenodo}


def stale(project: Path = PROJECT) -> dict[str, str]:
    """Return what should stand in each of the files that differs."""
    facts = read_facts(project)
    wanted = {name: write(facts) for name, write in FILES.items()}
    wanted[RECIPE] = recipe(project, facts)
    return {
        name: text
        for name, text in wanted.items()
        if not (project / name).exists() or (project / name).read_text(encoding="utf-8") != text
    }


def site_of(repository: str) -> str:
    """Address at which the host of a repository publishes its pages."""
    owner, name = urlsplit(repository).path.strip("/").split("/")
    return f"https://{owner.lower()}.github.io/{name}/"


def tracked(project: Path) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=project, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [project / line for line in listed.stdout.splitlines()]


def move(repository: str, project: Path = PROJECT) -> list[Path]:
    """Replace the project's addresses in every text file; returns the files changed."""
    urls = read_facts(project).urls
    repository = repository.rstrip("/")
    pairs = ((urls["Repository"], repository), (urls["Homepage"], site_of(repository)))
    changed = []
    for path in tracked(project):
        try:
            text = path.read_text(encoding="utf-8")
        except (UnicodeDecodeError, OSError):
            continue
        fresh = text
        for old, new in pairs:
            fresh = fresh.replace(old, new)
        if fresh != text:
            path.write_text(fresh, encoding="utf-8", newline="\n")
            changed.append(path)
    return changed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, fail on differences")
    parser.add_argument("--repository", help="new address of the repository")
    arguments = parser.parse_args()
    if arguments.repository:
        for path in move(arguments.repository):
            print("changed", path.relative_to(PROJECT))
    differing = stale()
    for name, text in differing.items():
        print("out of date:" if arguments.check else "wrote", name)
        if not arguments.check:
            (PROJECT / name).write_text(text, encoding="utf-8", newline="\n")
    return int(arguments.check and bool(differing))


if __name__ == "__main__":
    sys.exit(main())
