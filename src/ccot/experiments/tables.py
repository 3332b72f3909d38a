"""A table, the languages it is written in, and the words of all tables of the paper."""

import csv
import io
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from typing import Any

_LATEX = {"±": r"$\pm$", "–": "--", "×": r"$\times$", "σ": r"$\sigma$", "−": "$-$"}
_LATEX |= {sign: f"\\{sign}" for sign in "&%$#_{}"}


@dataclass(frozen=True)
class Text:
    """An entry of a table: what it says, whether it is bold, and a remark in small print."""

    plain: str
    bold: bool = False
    remark: str = ""


@dataclass(frozen=True)
class Table:
    """Rows under heads; ``name`` is the stem of its files, a line comes every ``groups`` rows."""

    name: str
    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Text | str]]
    notes: Sequence[str] = ()
    groups: int = 1

    def markdown(self) -> str:
        """Return the table in Markdown."""
        lines = [self.heads, ["---", *["---:"] * (len(self.heads) - 1)]]
        lines += [[_markdown(entry) for entry in row] for row in self.rows]
        body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        return "\n\n".join([f"**{self.caption}**", body, *self.notes])

    def csv(self) -> str:
        """Return heads and rows as comma-separated values."""
        return csv_text([self.heads, *([_text(entry).plain for entry in row] for row in self.rows)])

    def latex(self) -> str:
        """Return the table in LaTeX, for the package booktabs."""
        lines = [" & ".join(_latex(head) for head in self.heads) + r" \\", r"\midrule"]
        for number, row in enumerate(self.rows, start=1):
            lines.append(" & ".join(_latex(entry) for entry in row) + r" \\")
            if self.groups > 1 and number % self.groups == 0 and number < len(self.rows):
                lines.append(r"\midrule")
        columns = "l" + "r" * (len(self.heads) - 1)
        begin = [r"\begin{table}", rf"\caption{{{_latex(self.caption)}}}", r"\centering"]
        begin += [rf"\begin{{tabular}}{{{columns}}}", r"\toprule"]
        notes = (rf"\par\footnotesize {_latex(note)}" for note in self.notes)
        end = [r"\bottomrule", r"\end{tabular}", *notes, r"\end{table}", ""]
        return "\n".join([*begin, *lines, *end])

    def html(self) -> str:
        """Return the table in HTML."""
        # A narrow column may break a long name between its words.
        breakable = (re.sub(r"(?<=[a-z])(?=[A-Z])", "<wbr>", escape(head)) for head in self.heads)
        heads = "".join(f'<th scope="col">{head}</th>' for head in breakable)
        rows = []
        for number, row in enumerate(self.rows, start=1):
            first, *others = (_html(entry) for entry in row)
            mark = ' class="last"' if self.groups > 1 and number % self.groups == 0 else ""
            cells = f'<th scope="row">{first}</th>' + "".join(f"<td>{cell}</td>" for cell in others)
            rows.append(f"<tr{mark}>{cells}</tr>")
        notes = "".join(f'<p class="note">{escape(note)}</p>' for note in self.notes)
        return (
            f'<div class="wide" tabindex="0"><table><caption>{escape(self.caption)}</caption>'
            f"<thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>{notes}"
        )


def read_asset(name: str) -> str:
    """Return the text of a file that comes with the experiments."""
    return (resources.files("ccot.experiments") / "assets" / name).read_text(encoding="utf-8")


TEXTS: dict[str, Any] = tomllib.loads(read_asset("texts.toml"))


def worded_table(
    name: str, rows: Sequence, *more: str, heads: Sequence[str] = (), groups: int = 1, **values: Any
) -> Table:
    """Return a table whose words stand in TEXTS; a row there is a pattern that values fill."""
    words = TEXTS["tables"][name]
    if "row" in words:
        rows = [[entry.format(**row) for entry in words["row"]] for row in rows]
        rows = [*words.get("paper", ()), *rows]
    notes = [note.format(**values) for note in words.get("notes", ())]
    heads = words.get("heads", heads)
    return Table(name, words["caption"], heads, rows, [*notes, *more], groups)


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as comma-separated values."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows)
    return file.getvalue()


def _text(entry: Text | str) -> Text:
    return entry if isinstance(entry, Text) else Text(entry)


def _markdown(entry: Text | str) -> str:
    text = _text(entry)
    return f"**{text.plain}**" if text.bold else text.plain


def _latex(entry: Text | str) -> str:
    text = _text(entry)
    plain = text.plain.translate(str.maketrans(_LATEX))
    return rf"\textbf{{{plain}}}" if text.bold else plain


def _html(entry: Text | str) -> str:
    text = _text(entry)
    # A mean and its spread stay on one line.
    plain = escape(text.plain.replace(" ± ", "\u202f±\u202f"))
    plain = f"<b>{plain}</b>" if text.bold else plain
    return plain + (f"<small>{escape(text.remark)}</small>" if text.remark else "")
