"""The packages and layers of ``docs/architecture.md``; ``docs/render.py`` puts them in.

Packages are read from the source tree, layers from the contract that ``make lint`` checks.
"""

import ast
import tomllib
from collections.abc import Callable
from pathlib import Path

from stored import listed

PROJECT = Path(__file__).parents[1]
PACKAGE = PROJECT / "src" / "ccot"


def first_line(path: Path) -> str:
    """Return the first line of a module's docstring."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0].removesuffix(".").replace("``", "`")


def modules_of(folder: Path) -> list[str]:
    """Return the modules of a package, those of packages inside it after a dot."""
    paths = sorted(folder.rglob("*.py"), key=lambda path: (len(path.parts), path))
    names = (".".join(path.relative_to(folder).with_suffix("").parts) for path in paths)
    return [name for name in names if not name.endswith(("__init__", "__main__"))]


def packages() -> str:
    folders = sorted(path.parent for path in PACKAGE.glob("*/__init__.py"))
    rows = [
        (f"`{folder.name}/`", first_line(folder / "__init__.py"),
         ", ".join(f"`{name}`" for name in modules_of(folder)))
        for folder in folders
    ]  # fmt: skip
    alone = [path for path in sorted(PACKAGE.glob("*.py")) if not path.name.startswith("__")]
    rows += [(f"`{path.name}`", first_line(path), "") for path in alone]
    return listed(("package or module", "what it holds", "modules"), rows)


def contract() -> dict:
    """Return the contract on imports in ``pyproject.toml``."""
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    return settings["tool"]["importlinter"]["contracts"][0]


def layers() -> str:
    rows = []
    for number, layer in enumerate(contract()["layers"], 1):
        names = [name.strip(" ()") for name in layer.replace("|", ":").split(":")]
        among = "" if len(names) == 1 else "no" if "|" in layer else "yes"
        rows.append((str(number), ", ".join(f"`{name}`" for name in names), among))
    return listed(("layer", "packages and modules", "may import one another"), rows)


TABLES: dict[str, Callable[[], str]] = {"packages": packages, "layers": layers}
