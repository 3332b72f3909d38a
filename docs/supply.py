"""Table of ``docs/dependencies.md``; ``docs/render.py`` puts it in."""

from collections.abc import Callable

from ratings import load, source, table


def licences() -> str:
    result = load("licences")
    rows = [
        [package["name"], package["version"], package["licence"] or "unknown",
         ", ".join(f"`{name}`" for name in package["needed_for"])]
        for package in result["packages"]
    ]  # fmt: skip
    note = (
        f"{len(rows)} packages on {result['facts']['system']} with Python "
        f"{result['facts']['python']}."
    )
    return table(["package", "version", "licence", "needed for"], rows) + source(
        "licences", result, note
    )


TABLES: dict[str, Callable[[], str]] = {"licences": licences}
