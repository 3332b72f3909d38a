"""Khiops, where it is installed: a program beside Python that clusters both sides of a table."""

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np


def khiops_rows(frame: Any, n_rows: int, counts: bool = False) -> np.ndarray:
    """Return row clusters by Khiops, of a table of instances, or of counts.

    Counts have the columns ``row`` (names: "r0" and so on), ``column`` and ``count``; rows without
    any are in cluster 0. The program has the limits of this process: TimeoutError if they end it.
    """
    from khiops import core  # pyright: ignore[reportMissingImports]
    from khiops.core.exceptions import KhiopsRuntimeError  # pyright: ignore[reportMissingImports]

    labels = np.zeros(n_rows, dtype=int)
    with tempfile.TemporaryDirectory() as folder:
        text, known, found = (str(Path(folder, name)) for name in ("t.txt", "t.kdic", "t.khcj"))
        frame.to_csv(text, sep="\t", index=False)
        core.build_dictionary_from_data_table(text, "table", known, field_separator="\t")
        options = {"header_line": True, "field_separator": "\t", "max_cores": 1}
        train = core.train_instance_variable_coclustering
        if counts:
            train = core.train_coclustering
            options |= {"coclustering_variables": ["row", "column"], "frequency_variable": "count"}
        try:
            train(known, "table", text, coclustering_report_file_path=found, **options)
        except KhiopsRuntimeError as error:
            if not re.search(r"return code -(9|24)\b", str(error)):
                raise
            raise TimeoutError("Khiops was ended, as a rule for its time") from None
        if not Path(found).exists():  # "No informative coclustering found in data"
            return labels
        report = json.loads(Path(found).read_text())["coclusteringReport"]
    # Instances are called by their lines, of which the first is the header.
    first = 0 if counts else 2
    for label, group in enumerate(report["dimensionPartitions"][0]["valueGroups"]):
        # A group may hold " * " as well, for names that are not in the table.
        names = (name.removeprefix("r") for name in group["values"])
        labels[[int(name) - first for name in names if name.isdigit()]] = label
    return labels
