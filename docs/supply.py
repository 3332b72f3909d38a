"""Tables of ``docs/dependencies.md``; ``docs/render.py`` puts them in."""

from collections.abc import Callable

from stored import load, source, table


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


def weight() -> str:
    result = load("install")
    rows = []
    for one in result["installations"]:
        name = f"`ccot[{one['extra']}]`" if one["extra"] else "`ccot`"
        largest = [f"{it} {size:.0f}" for it, size in list(one["megabytes_of"].items())[:4]]
        rows.append(
            [name, str(one["packages"]), f"{one['megabytes']:.0f}", ", ".join(largest),
             f"{one['seconds']:.0f}"]
        )  # fmt: skip
    facts = result["facts"]
    note = (
        f"Into an empty environment, nothing cached; seconds with download, on {facts['cores']} "
        f"cores shared with others (load {facts['load']:.0f}). The wheel of ccot itself has "
        f"{result['wheel_kilobytes']} kB."
    )
    heads = ["installed", "packages", "MB on the disk", "the largest", "seconds"]
    return table(heads, rows) + source("install", result, note)


TABLES: dict[str, Callable[[], str]] = {"licences": licences, "weight": weight}
