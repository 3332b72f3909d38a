"""Tables of large matrices, which ``docs/render.py`` puts in."""

from collections.abc import Callable
from statistics import mean

from stored import RESULTS, load, run_of, source, table


def gw_speed() -> str:
    result = load("large_gw")
    rows = [
        [
            f"{cell['set']}, {cell['shape'][0]} x {cell['shape'][1]}",
            f"{cell['times_faster']:.1f}",
            f"{cell['seconds_ours']:.3f}",
            f"{cell['seconds_pot']:.3f}",
            f"{cell['scalings_differ_by']:.0e}",
        ]
        for cell in result["speed"]
    ]
    note = (
        "Processor time of POT divided by that of `CCOTGW(exact_refinement=False)`, which includes "
        "kernels, jumps and labels, and the largest difference of its log scalings from those of "
        f"couplings that are stored in full. {result['facts']['processor']}, one thread."
    )
    heads = ["matrix", "times faster", "ours (s)", "POT (s)", "scalings differ by"]
    return table(heads, rows) + source("large_gw", result, note)


def gw_growth() -> str:
    result = load("large_gw")
    cells = result["cells"]
    rows = [
        ["seconds", *(f"{cell['seconds']:.1f}" for cell in cells)],
        ["the matrix (MB)", *(f"{cell['megabytes_of_the_matrix']}" for cell in cells)],
        ["memory beside it (MB)", *(f"{cell['megabytes_more']}" for cell in cells)],
        ["share of rows in a wrong cluster", *(f"{cell['row_error']:.5f}" for cell in cells)],
    ]
    both = result["both"]
    differ = max(both["row_labels_that_differ"], both["column_labels_that_differ"])
    note = (
        f"`CCOTGW(n_support={result['n_support']})` on noisy blocks of {cells[0]['columns']} "
        f"columns: processor time grows like the number of rows to the power "
        f"{result['exponent']:.2f}. At {both['rows']} rows, where all pairs fit too, the share of "
        f"labels that differ is {differ:g}. {result['facts']['processor']}, one thread."
    )
    return table(["rows", *(str(cell["rows"]) for cell in cells)], rows) + source(
        "large_gw", result, note
    )


def blocks_growth() -> str:
    result = load("large_blocks")
    rows = [
        [
            f"{cell['nnz']}",
            f"{cell['shape'][0]} x {cell['shape'][1]}",
            f"{cell['seconds']:.1f}",
            f"{1e9 * cell['seconds'] / cell['nnz']:.0f}",
            f"{cell['gigabytes']:.2f}",
            f"{cell['clusters'][0]} x {cell['clusters'][1]}",
            f"{max(cell['row_error'], cell['column_error']):.3f}",
        ]
        for cell in result["cells"]
    ]
    note = (
        "Whole fits of generated counts with 8 x 6 blocks, numbers found: processor time, which "
        f"grows like the number of non-zeros to the power {result['exponent']:.2f}, and the peak "
        f"of memory, the matrix and the interpreter included. {result['facts']['processor']}, one "
        "thread."
    )
    heads = ["non-zeros", "shape", "seconds", "ns a non-zero", "memory (GB)", "clusters found",
             "largest error"]  # fmt: skip
    return table(heads, rows) + source("large_blocks", result, note, result["cells"])


def threads() -> str:
    if not (RESULTS / "threads.json").exists():
        return "Not measured yet: `python -m benchmarks.threads --jobs 1 2`."
    result = load("threads")
    rows = [
        [
            f"{cell['threads']} of {cell['cores']}",
            f"{min(cell['seconds']['1']):.1f}",
            f"{min(cell['seconds'][str(cell['threads'])]):.1f}",
            f"{cell['times_faster']:.2f}",
            "the same" if cell["same_results"] else "not the same",
        ]
        for cell in result["cells"]
    ]
    first = result["cells"][0]
    note = (
        f"Whole fits of {first['shape'][0]:,} x {first['shape'][1]:,} counts with {first['nnz']:,} "
        "entries, on one thread and on several in turns: the least seconds on the clock, and the "
        "median over the turns of the one over the other."
    )
    heads = ["threads, of cores", "one thread (s)", "several (s)", "times faster", "results"]
    return table(heads, rows) + source("threads", result, note, result["cells"])


def blocks_gpu() -> str:
    result = load("gpu_transport")
    rows = [
        [
            f"{cell['matrix']}, {cell['shape'][0]:,} x {cell['shape'][1]:,}, "
            f"{cell['entries']:,} entries",
            f"{cell['seconds_gpu']:.1f}",
            f"{cell['seconds_numpy']:.1f}",
            f"{cell['times_faster']:.1f}",
            f"{cell['gpu_gigabytes']:.1f}",
            f"{cell['gigabytes']:.1f}",
            "all equal"
            if not any(cell["labels_that_differ"])
            else " and ".join(map(str, cell["labels_that_differ"])) + " differ",
        ]
        for cell in result["cells"]
        if "seconds_numpy" in cell
    ]
    facts, card = result["facts"], result["card"]
    note = (
        f"Whole fits, numbers found, from the matrix in memory to labels: "
        f'`TransportCoclustering(device="cuda")` on {card["name"]}, PyTorch {card["torch"]}, and '
        f"with NumPy on {facts['processor']}, {facts['cores']} cores, at the same seed."
    )
    if "labels" in result:
        equal = result["labels"]["fits_with_equal_labels"]
        n_fits = result["labels"]["fits_a_set"] * len(equal)
        note += (
            f" On the simulated sets {', '.join(equal)} all labels are equal in "
            f"{sum(equal.values())} of {n_fits} fits."
        )
    heads = ["matrix", "GPU (s)", "NumPy (s)", "times faster", "GPU memory (GB)", "matrix (GB)",
             "labels of rows and columns"]  # fmt: skip
    return table(heads, rows) + source("gpu_transport", result, note)


def counts_gpu() -> str:
    result = load("gpu_counts")
    rows = [
        [
            f"{cell['matrix']}, {cell['entries']:,} entries",
            cell["from"],
            f"{cell['seconds']:.2f}",
            f"{cell['busy_share']:.0%}",
            f"{cell['gpu_gigabytes']:.1f}",
            f"{cell['more_gigabytes_in_memory']:.1f}",
            f"{cell['clusters'][0]} x {cell['clusters'][1]}",
            f"{cell['row_error']:.3f}",
        ]
        for cell in result["cells"]
    ]
    first = next(cell for cell in result["cells"] if cell["from"] == "SciPy")
    numpy = "; ".join(
        f"on {one['threads']} of the cores {one['seconds']:.1f} s, "
        f"{one['seconds'] / first['seconds']:.0f} times as long, with "
        + ("the same labels" if not any(one["labels_that_differ"]) else "other labels")
        for one in result["numpy"]
    )
    note = (
        "Whole fits of counts with 8 x 6 planted blocks, numbers found, from a matrix of SciPy in "
        f"memory or from a CSR tensor on {result['card']['name']}: seconds (the median of fits of "
        "two seconds together), the share of them in which the GPU is busy, its memory, the memory "
        f"needed in addition to the matrix, and the error of the rows. With NumPy the first of "
        f"them takes {numpy}. Columns of one cluster differ in their sums, and logarithms of "
        "counts do not remove this difference completely. So with a million rows there are more "
        "column clusters than were planted."
    )
    note += "".join(
        f" scanpy's recipe (2,000 variable genes, principal components, neighbours, Leiden; "
        f"version {one['versions']['scanpy']}) takes {one['seconds']:.0f} s for the first of them "
        f"on {one['cores']} cores, the compilation of its parts included, and finds "
        f"{one['clusters']} clusters of rows, NMI {one['nmi']:.2f} with those planted"
        + (f" ({run_of(one['run'])})." if "run" in one else ".")
        for one in result["scanpy"]
    )
    heads = ["matrix", "from", "seconds", "busy", "GPU memory (GB)", "memory (GB)",
             "clusters found", "row error"]  # fmt: skip
    return table(heads, rows) + source("gpu_counts", result, note)


def gpu_batches() -> str:
    result = load("gpu_batches")
    rows = [
        [
            cell["set"],
            f"{cell['milliseconds']:.1f}",
            f"{cell['times_faster_than_pot_sinkhorn']:.1f}",
            f"{cell['times_faster_than_pot_log_sinkhorn']:.1f}",
        ]
        for cell in result["pot_batches"]
    ]
    gromov, n_draws = result["pot_gromov"], result["pot_batches"][0]["draws"]
    note = (
        f"{n_draws} draws of CCOT solved at once on {result['card']['name']}, costs included, and "
        "how many times as long `ot.batch.solve_batch` takes in single precision, plain and with "
        "logarithms. It is the other way round for Gromov-Wasserstein: of "
        f"{gromov['shape'][0]} alignments of kernels of {gromov['shape'][1]} points with 30, "
        f"`ot.batch.solve_gromov_batch` takes {gromov['pot_milliseconds_each']:.2f} ms each "
        f"({gromov['pot_milliseconds_alone']:.1f} ms alone), ours, one after the other, "
        f"{gromov['own_milliseconds_each']:.1f} ms. POT's proximal method solves a problem without "
        "entropy, so these are not the same couplings."
    )
    heads = ["set", "ours (ms)", "POT's Sinkhorn", "POT's log Sinkhorn"]
    return table(heads, rows) + source("gpu_batches", result, note)


def sweeps_on_cluster() -> str:
    result = load("full_sweeps")
    seen = result["cluster"]
    runs, (n_rows, n_columns) = seen["runs"], seen["shape"]
    sweeps = runs[0]["passes"]
    rows = [
        [
            run["how"],
            f"{run['seconds']:.0f}",
            f"{max(run['worker_megabytes']):.0f}" if "worker_megabytes" in run else "",
            f"{run['row_labels_that_differ']}, {run['column_labels_that_differ']}"
            if "row_labels_that_differ" in run
            else "",
        ]
        for run in runs
    ]
    n_tasks = {one["tasks"] for one in sweeps[1:]}
    assert len(n_tasks) == 1, "the graph must not grow from sweep to sweep"
    note = (
        f"Sparse counts of {n_rows:,} x {n_columns:,} with {seen['entries']:,} entries, generated "
        f"by the workers in {seen['blocks']} blocks; 8 x 6 clusters given; {len(sweeps)} passes, "
        "until at most one label in 10,000 changes. *Labels that differ*: those of rows and "
        f"columns, compared with the first run. Every pass but the first has {n_tasks.pop()} "
        f"tasks. The limit for a worker was 1,500 MB. The client, which fits the sample and "
        f"stores the results of all three runs, took {seen['client_megabytes']:.0f} MB. NMI with "
        f"the planted rows is {seen['row_nmi']:.3f}. Other programs ran at the same time, so do "
        f"not rely on the seconds. {result['facts']['processor']}, "
        f"{result['facts']['cores']} cores."
    )
    heads = ["run", "seconds", "largest worker (MB)", "labels that differ"]
    return table(heads, rows) + source("full_sweeps", result, note, runs)


def sweeps_gain() -> str:
    result = load("full_sweeps")
    rows = []
    for cell in result["gain"]:
        once, few, every = ([one[i] for one in cell["nmi"]] for i in range(3))
        icl = [[(one[i] - one[i - 1]) / abs(one[i - 1]) for one in cell["icl"]] for i in (1, 2)]
        rows.append(
            [
                f"{cell['set']}, {cell['shape'][0]:,} x {cell['shape'][1]:,}",
                *(f"{mean(values):.3f}" for values in (once, few, every)),
                *(f"{mean(values):+.2%}" for values in icl),
                f"{mean([one[2] for one in cell['sweeps']]):.0f}",
            ]
        )
    every = [[one[i] for cell in result["gain"] for one in cell["nmi"]] for i in range(3)]
    rows.append(["mean", *(f"{mean(values):.3f}" for values in every), "", "", ""])
    note = (
        "The sample is a quarter of the rows, and the number of row clusters is given. First, the "
        "NMI of rows with their classes after one pass over all rows, after at most four (the "
        "default), and after *all*, until at most one label in a million changes. Then the change "
        "of ICL from one to four passes and from four to all, and the number of all passes. ICL "
        "may decrease, because rows are assigned with fine clusters of columns, and columns with "
        "fine clusters of rows. "
        "Means over "
        f"{result['gain'][0]['seeds']} seeds."
    )
    heads = ["counts", "one", "four", "all", "ICL, four", "ICL, all", "passes"]
    return table(heads, rows) + source("full_sweeps", result, note, result["gain"])


def csv_memory() -> str:
    result = load("csv_memory")
    alone = result["alone_megabytes"]
    rows = [
        [
            f"{cell['kind']}, {cell['shape'][0]} x {cell['shape'][1]}",
            f"`{cell['method']}`",
            f"{cell['matrix_megabytes']:.0f}",
            f"{cell['peak_megabytes']:.0f}",
            f"{cell['ratio']:.1f}",
            f"{(cell['peak_megabytes'] - alone) / cell['matrix_megabytes']:.1f}",
        ]
        for cell in result["cells"]
    ]
    pandas = (
        "pandas was installed, and scikit-learn imports it."
        if result["pandas"]
        else "Only ccot was installed; if pandas is, scikit-learn imports it and takes more memory."
    )
    note = (
        f"`ccot fit` on CSV files of {result['cells'][0]['file_megabytes']:.0f} MB, report "
        "included: peak memory of the process, also divided by the size of the matrix in "
        f"float64. The program alone, with Python and all libraries, takes {alone:.0f} MB "
        f"(`ccot --version`); the last column leaves that out. {pandas}"
    )
    heads = ["file", "method", "matrix (MB)", "peak (MB)", "times the matrix", "program left out"]
    return table(heads, rows) + source("csv_memory", result, note)


TABLES: dict[str, Callable[[], str]] = {
    made.__name__: made
    for made in (
        gw_speed,
        gw_growth,
        blocks_growth,
        threads,
        blocks_gpu,
        counts_gpu,
        gpu_batches,
        csv_memory,
        sweeps_on_cluster,
        sweeps_gain,
    )
}
