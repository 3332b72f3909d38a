"""Tables that are read part by part; a sample of their rows is held in memory."""

from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np

from ccot.io.layout import names_rows
from ccot.io.matrix import InputError, Table
from ccot.io.mixed import as_text

# If a table has more rows, only a sample is held.
_FEW_ROWS, _SAMPLE_ROWS = 50_000, 20_000


class TableParts:
    """A table that stays in its file; only a sample of the rows is held (all, if there are few).

    Attributes
    ----------
    sample, rows : Table; ndarray of int, the rows that are held, and where they are in the file
    shape : tuple of int, numbers of rows and columns
    parts : callable, returns an iterator of tables that together have all rows
    """

    def __init__(self, parts: Callable[[], Iterator[Table]]) -> None:
        self.parts = parts
        # The same file always has the same sample, with any seed of a fit.
        rng, n_rows, held, notes = np.random.default_rng(0), 0, [], {}
        for part in self.parts():
            key = rng.random(part.shape[0])
            # Rows whose keys may be among the lowest at the end.
            kept = np.flatnonzero(key < _FEW_ROWS / (n_rows + len(key)))
            some = {name: column[kept] for name, column in part.columns.items()}
            held.append((some, key[kept], n_rows + kept))
            notes = {note.partition(":")[0]: note for note in part.notes[1:]} | notes
            n_rows, kinds = n_rows + len(key), part.kinds
        if not n_rows:
            raise InputError("the table has no rows: pass data")
        pieces, keys, rows = zip(*held, strict=True)
        lowest = np.argsort(np.concatenate(keys))[: n_rows if n_rows <= _FEW_ROWS else _SAMPLE_ROWS]
        chosen = np.sort(lowest)
        self.rows = np.concatenate(rows)[chosen]
        columns = {name: _stack([one[name] for one in pieces])[chosen] for name in pieces[0]}
        counts = {name: "identifier" for name, one in columns.items()
                  if one.dtype.kind == "f" and np.ptp(one - self.rows) == 0}  # fmt: skip
        first = next(iter(columns.items()), None)
        if first and len(self.rows) == n_rows and names_rows(*first):
            counts[first[0]] = "identifier"
        self.sample = Table(columns, None, ("", *notes.values()), kinds | counts)
        self.shape = n_rows, len(columns)
        self.unread: dict[int, Counter[str]] = {}  # by part

    def counted(self, unread: Callable[[Table], Counter[str]]) -> Iterator[Table]:
        """Yield the parts; cells that cannot be read are counted when a part is read first."""
        for number, part in enumerate(self.parts()):
            self.unread[number] = self.unread.get(number) or unread(part)
            yield part


def _stack(parts: list[np.ndarray]) -> np.ndarray:
    """Return a column from its parts; numbers become text if other parts are text."""
    if len({part.dtype.kind for part in parts}) > 1:
        texts = ([as_text(v) or None for v in p.tolist()] if p.dtype.kind == "f" else p
                 for p in parts)  # fmt: skip
        parts = [np.array(part, dtype=object) for part in texts]
    return np.concatenate(parts)
