"""The report inside a notebook: one iframe that holds the whole page, no server."""

from __future__ import annotations

import html
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ccot.report.page import write_report


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
    model : estimator
        Fitted.
    X : ndarray, sparse matrix, data frame or None
        The matrix.
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
