"""The page: values and assets put together into one file."""

import html
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ccot._version import __version__
from ccot.describe import MAX_NAMED_ROWS, MAX_ROWS, Column
from ccot.estimators.base import as_numbers
from ccot.estimators.tables import numbers_shown
from ccot.persistence.atomic import write_atomically
from ccot.plotting._shared import PALETTE, SIDES
from ccot.recommend.ratings import see
from ccot.recommend.recommender import BlockRecommender
from ccot.report import content
from ccot.report.pack import pack_matrix, pack_text, spread
from ccot.sources import RowSource

# In the order in which they build on each other; the page runs them as one module.
_NAMES = (
    "dom decode colours matrix partition profile modes annotations picture margins export gestures "
    "charts evidence blocks members main"
)
SCRIPTS = [f"{name}.js" for name in _NAMES.split()]


def write_report(
    path: str | os.PathLike[str],
    models: Any,
    *,
    matrix: Any = None,
    row_names: Sequence[str] | None = None,
    column_names: Sequence[str] | None = None,
    title: str | None = None,
    notes: Sequence[str] = (),
    columns: Sequence[Column] | None = None,
    annotations: Any = None,
    column_annotations: Any = None,
    cluster_names: Any = None,
    raw_names: bool = False,
) -> Path:
    """Write one self-contained, interactive HTML page of a fitted estimator, or of several.

    The page needs no network and no other file. It shows the matrix ordered by cluster and as
    given, block means, cluster sizes, members with their confidence, what distinguishes each
    cluster, and how the numbers of clusters were chosen.

    Parameters
    ----------
    path : path-like
        The file, replaced only when the new page is complete; its folder is made if needed.
    models : estimator, BlockRecommender, or mapping of str to estimator
        Fitted to the same matrix; several are compared. A recommender includes its ratings.
    matrix : ndarray, sparse matrix, data frame, Table or RowSource, optional
        The data; without it there is no picture of the matrix.
    row_names, column_names : sequence of str, optional
        Names; by default those of the data frame or of the fit, or "row 0" and so on.
    title : str, optional
        Heading of the page.
    notes : sequence of str, optional
        More warnings to show, besides those about the models.
    columns : sequence of ccot.describe.Column, optional
        Kinds of the columns (numbers, amounts, ones, categories); by default recognised.
    annotations, column_annotations : data frame or mapping of str to sequence, optional
        Facts that were not used for fitting, such as known classes, to compare with the clusters.
    cluster_names : mapping or path-like, optional
        ``{"row": {"0": name, ...}, "column": {...}}``, or a JSON file of it as the page saves.
    raw_names : bool, default=False
        Write names unchanged in CSV downloads, even if a spreadsheet would run them as formulas.

    Returns
    -------
    pathlib.Path
        The file written.

    Examples
    --------
    >>> from ccot import CCOT, datasets
    >>> from ccot.report import write_report
    >>> matrix = datasets.load_simulated("D1", random_state=0).data
    >>> model = CCOT(3, 3, random_state=0).fit(matrix)
    >>> page = getfixture("tmp_path") / "blocks.html"
    >>> page = write_report(page, model, matrix=matrix, title="Set D1")
    >>> page.name, page.stat().st_size > 100_000
    ('blocks.html', True)
    """
    ratings = models if isinstance(models, BlockRecommender) else None
    if ratings is not None:
        matrix = ratings.ratings_
        row_names, column_names = ratings.user_names_, ratings.item_names_
        title = title or f"Ratings of {len(column_names)} items (columns) by {len(row_names)} users"
    named = dict(models) if isinstance(models, Mapping) else {type(models).__name__: models}
    named = {name: getattr(model, "coclustering_", model) for name, model in named.items()}
    if not named:
        raise ValueError("models is empty: pass a fitted estimator, or a dict of them by name")
    shown = _shown(named, matrix, (row_names, column_names), title, columns, ratings)
    given = zip(SIDES, (annotations, column_annotations), shown["shape"], strict=True)
    shown["annotations"] = {side: content.pack_annotations(of, side, n) for side, of, n in given}
    shown |= {"cluster_names": content.read_cluster_names(cluster_names), "raw_names": raw_names}
    for model in shown["models"]:
        model["warnings"] = [*notes, *model["warnings"]]
    path = Path(path)
    with write_atomically(path, "w") as file:
        file.writelines(_page(shown))
    return path


def _shown(
    models: Mapping[str, Any],
    matrix: Any,
    called: tuple[Sequence[str] | None, Sequence[str] | None],
    title: str | None,
    columns: Sequence[Column] | None,
    ratings: BlockRecommender | None,
) -> dict[str, Any]:
    """Return what the page holds but for annotations and names of clusters, as JSON can hold it."""
    first = next(iter(models.values()))
    check_is_fitted(first)
    shape = len(first.row_labels_), len(first.column_labels_)
    # Columns that were left out of a table are not shown.
    kept = np.flatnonzero(first.column_labels_ >= 0)
    for name, model in models.items():
        _check_shape(f"model {name!r}", (len(model.row_labels_), len(model.column_labels_)), shape)
    known = getattr(matrix, "columns", None), getattr(first, "feature_names_in_", None)
    index = getattr(matrix, "index", None) if known[0] is not None else None
    every_column = _names("column", shape[1], called[1], *known)
    names = {
        "row": _names("row", shape[0], called[0], index),
        "column": [every_column[index] for index in kept],
    }
    packed, seen = None, None
    matrix, mixed = numbers_shown(first, matrix)
    if matrix is not None:
        if not isinstance(matrix, RowSource):
            matrix = as_numbers(matrix)
        _check_shape("matrix", matrix.shape, shape)
        if len(kept) < shape[1] and not isinstance(matrix, RowSource):
            matrix = matrix[:, kept]
        packed = pack_matrix(matrix, first.row_labels_, first.column_labels_[kept])
        if ratings is not None:
            # Who gave no rating gave no 0; who liked what tells groups apart.
            packed |= {"missing": True, "amounts": False}
            matrix = see(ratings.ratings_, "likes", ratings.like_)
        # Numbers of levels tell nothing: what was kept of the fit describes such clusters.
        if not mixed:
            seen = _seen(matrix, first.row_labels_, names["row"], columns or names["column"])
        if columns is not None:
            names["column"] = [column.title for column in columns]
    described = [content.describe_model(str(name), model, seen) for name, model in models.items()]
    if ratings is not None:
        described[0]["means"] = content.numbers_or_none(ratings.block_means_)
    return {
        "title": title or f"{shape[0]} x {shape[1]} matrix, co-clustered",
        "version": __version__,
        "shape": (shape[0], len(kept)),
        "names": {side: pack_text(listed) for side, listed in names.items()},
        "matrix": packed,
        "levels": mixed,
        "palette": PALETTE,
        "models": described,
        "agreement": content.compare_models(models),
    }


def _seen(
    matrix: Any, labels: np.ndarray, names: list[str], columns: Sequence[Column | str]
) -> content.Seen:
    """Return what clusters are described by: of very many rows an even part."""
    if not isinstance(matrix, RowSource) and len(names) <= MAX_ROWS:
        return content.Seen(matrix, np.arange(len(names)), names, columns)
    part = spread(labels, min(len(names), MAX_NAMED_ROWS))
    rows = matrix.rows(part) if isinstance(matrix, RowSource) else matrix[part]
    return content.Seen(rows, part, [names[i] for i in part.tolist()], columns)


def _check_shape(what: str, shape: tuple[int, ...], expected: tuple[int, int]) -> None:
    if tuple(shape) != expected:
        raise ValueError(
            f"{what} has shape {tuple(shape)}, but the first model was fitted to {expected}: "
            "a report is of one matrix"
        )


def _names(side: str, number: int, *sources: Any) -> list[str]:
    """Return the first names there are, as text."""
    given = next((source for source in sources if source is not None), None)
    if given is None:
        return [f"{side} {index}" for index in range(number)]
    names = [str(name) for name in given]
    if len(names) != number:
        raise ValueError(f"{len(names)} {side}_names for {number} {side}s: pass one for each")
    return names


def _page(shown: Mapping[str, Any]) -> Iterator[str]:
    """Yield the page in pieces: together they would be one more copy of the matrix."""

    def read(name: str) -> str:
        return (resources.files("ccot.report") / "assets" / name).read_text(encoding="utf-8")

    summaries = "\n\n".join(model["summary"] or model["name"] for model in shown["models"])
    fields = {
        "title": html.escape(shown["title"]),
        "summary": html.escape(summaries).encode("utf-8", "replace").decode(),
        "style": read("style.css"),
        "script": "\n".join(read(name) for name in SCRIPTS),
    }
    before, after = read("page.html").split("$content")
    yield Template(before).substitute(fields)
    yield embed(shown)
    yield Template(after).substitute(fields)


def embed(values: Any) -> str:
    """Return JSON that is safe inside a ``<script>`` element, whatever names it holds."""
    text = json.dumps(values, allow_nan=False, separators=(",", ":"))
    return text.translate({ord(one): f"\\u{ord(one):04x}" for one in "<>&"})


@dataclass(frozen=True)
class ReportFrame:
    """A page that a notebook shows in an iframe, ``height`` pixels high."""

    page: str
    height: int

    def _repr_html_(self) -> str:
        return (
            f'<iframe title="ccot report" srcdoc="{html.escape(self.page)}" width="100%" '
            f'height="{self.height}" style="border:0"></iframe>'
        )


def show_report(model: Any, X: Any, *, height: int = 900, **options: Any) -> ReportFrame:
    """Return the report of a fitted estimator for a notebook.

    Parameters
    ----------
    model, X : estimator, and ndarray, sparse matrix, data frame or None
        The fitted estimator, and its matrix.
    height : int, default=900
        Height of the iframe, in pixels.
    **options
        Passed to :func:`write_report`.

    Returns
    -------
    ReportFrame
        What a notebook shows.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = write_report(Path(folder, "report.html"), model, matrix=X, **options)
        return ReportFrame(path.read_text(encoding="utf-8"), height)
