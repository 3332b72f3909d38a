"""What a notebook shows of a fitted estimator: block means, as a table and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

_WIDTH, _HEIGHT, _NONE = 260, 200, "#d8d8d4"
# Little to much; below zero and above.
_PLAIN = ((247, 250, 251), (33, 94, 168))
_SIGNED = ((36, 86, 168), (248, 248, 246), (190, 82, 30))


def show_blocks(
    means: np.ndarray,
    rows: tuple[np.ndarray, Sequence[str]],
    columns: tuple[np.ndarray, Sequence[str]],
) -> str:
    """Return HTML: a picture of the blocks in their sizes beside a table of their means."""
    colours = _colours(means)
    heads = "".join(
        f'<th title="{escape(name)}">C{k} ({size})</th>'
        for k, (name, size) in enumerate(zip(columns[1], columns[0], strict=True))
    )
    lines = "".join(
        f'<tr><th style="text-align:left">R{k} ({rows[0][k]}) {escape(rows[1][k])}</th>'
        + "".join(f"<td>{mean:.3g}</td>" for mean in row)
        + "</tr>"
        for k, row in enumerate(means)
    )
    return (
        '<div style="display:flex;gap:1.5em;align-items:flex-start;flex-wrap:wrap">'
        f"{_picture(colours, (rows[0], columns[0]))}<table><thead><tr><th></th>{heads}</tr></thead>"
        f"<tbody>{lines}</tbody></table></div>"
    )


def _picture(colours: list[list[str]], sizes: tuple[np.ndarray, np.ndarray]) -> str:
    down, across = (
        np.cumsum([0, *part]) / max(part.sum(), 1) * length
        for part, length in zip(sizes, (_HEIGHT, _WIDTH), strict=True)
    )
    blocks = "".join(
        f'<rect x="{across[j]:.1f}" y="{down[i]:.1f}" width="{across[j + 1] - across[j]:.1f}" '
        f'height="{down[i + 1] - down[i]:.1f}" fill="{colour}" stroke="#fff"/>'
        for i, row in enumerate(colours)
        for j, colour in enumerate(row)
    )
    size = f'width="{_WIDTH}" height="{_HEIGHT}"'
    return f'<svg {size} role="img" aria-label="Block means">{blocks}</svg>'


def _colours(means: np.ndarray) -> list[list[str]]:
    low, high = float(np.nanmin(means)), float(np.nanmax(means))
    stops = _PLAIN
    if low < 0 < high:
        high = max(-low, high)
        low, stops = -high, _SIGNED
    places = np.linspace(0, 1, len(stops))
    position = (means - low) / ((high - low) or 1)
    mixed = np.stack([np.interp(position, places, part) for part in zip(*stops, strict=True)], -1)
    return [[_hex(colour) for colour in row] for row in mixed]


def _hex(colour: np.ndarray) -> str:
    return _NONE if np.isnan(colour).any() else "#" + bytes(colour.round().astype(np.uint8)).hex()
