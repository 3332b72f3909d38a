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
             f"{one['seconds']:.0f}", f"{one['processor_seconds']:.0f}",
             f"{one['seconds_to_import']:.2f}", f"{one['seconds_of_version']:.2f}"]
        )  # fmt: skip
    facts = result["facts"]
    note = (
        f"Installed into an empty environment without a cache. Seconds are on the clock and "
        f"include the download, on {facts['cores']} cores shared with other work (load "
        f"{facts['load']:.0f}); the other times are seconds of processor time. The wheel of ccot "
        f"itself has {result['wheel_kilobytes']} kB."
    )
    heads = ["installed", "packages", "MB on the disk", "the largest", "seconds",
             "of processor time", "`import ccot`", "`ccot --version`"]  # fmt: skip
    return table(heads, rows) + source("install", result, note)


def pythons() -> str:
    """Counts of the fast tests on each Python, and how many parts of them were run."""
    result = load("pythons")
    kinds: dict[tuple[str, str], list[dict]] = {}
    for one in result["rows"]:
        name = one["python"] + (", free-threaded" if one["free_threaded"] else "")
        around = ", ".join(f"{it} {at}" for it, at in one["versions"].items())
        kinds.setdefault((name, f"{one['packages']}: {around}"), []).append(one)
    rows = [
        [*kind, f"{len(seen)} of {result['parts']}",
         *(f"{sum(one[it] for one in seen):,}" for it in ("passed", "skipped", "failed"))]
        for kind, seen in kinds.items()
    ]  # fmt: skip
    note = (
        f"The fast tests, folder by folder, on {result['facts']['system']}. Tests are skipped "
        "where there is no browser or GPU."
    )
    heads = ["Python", "packages", "folders run", "passed", "skipped", "failed"]
    return table(heads, rows) + source("pythons", result, note, result["rows"])


TABLES: dict[str, Callable[[], str]] = {
    "licences": licences,
    "pythons": pythons,
    "weight": weight,
}
