"""Tables of ``docs/ratings.md``; ``docs/render.py`` puts them in."""

from collections.abc import Callable
from functools import partial

from stored import load, source, table

from ccot.experiments import movielens_page
from ccot.experiments.tables import Table, worded_table


def ratings_errors() -> str:
    result = load("ratings_compare")
    rows = [
        [cell["method"], *(f"{cell[key]:.3f}" for key in ("rmse", "mae")), f"{cell['seconds']:.1f}"]
        for cell in result["cells"]
        if "rmse" in cell
    ]
    note = "Errors of predicted ratings, and seconds of a fit on a machine that others used too."
    return table(["method", "RMSE", "MAE", "seconds"], rows) + source(
        "ratings_compare", result, note
    )


def ratings_lists() -> str:
    result = load("ratings_compare")
    rows = [
        [cell["method"], *(f"{cell[key]:.3f}" for key in ("precision", "ndcg"))]
        for cell in result["cells"]
        if "ndcg" in cell
    ]
    note = "Lists of ten unseen items; items that the test fold rates 4 or 5 are relevant."
    heads = ["method", "precision at 10", "NDCG at 10"]
    return table(heads, rows) + source("ratings_compare", result, note)


def ratings_online() -> str:
    result = load("ratings_agreement")
    shown = ("all", "50", "20", "10")
    rows = []
    for name in dict.fromkeys(cell["groups"] for cell in result["cells"]):
        cells = [cell for cell in result["cells"] if cell["groups"] == name]
        for what, of in (("mean", lambda x: sum(x) / len(x)), ("lowest", min)):
            seen = [of([cell[key] for cell in cells]) for key in ("old_users", *shown)]
            rows.append([f"{name}, {what}", *(f"{value:.2f}" for value in seen)])
    n_splits = len({cell["seed"] for cell in result["cells"]})
    note = (
        f"Adjusted Rand index with the fit that includes the new users, {n_splits} splits of the "
        "users: for users of both fits, and for new users with all or some of their ratings."
    )
    heads = ["", "users of both fits", *(f"new, {number} ratings" for number in shown)]
    return table(heads, rows) + source("ratings_agreement", result, note)


def ratings_latency() -> str:
    result = load("ratings_latency")
    names = ("median", "p90", "p99", "p999", "largest")
    note = (
        f"Milliseconds from the ratings of a new user to a label and ten recommendations, "
        f"{result['requests']} requests on one core of {result['facts']['processor']}; the machine "
        "was busy with other work at the time, which the clock counts and processor time does not."
    )
    rows = [
        [what, *(f"{result[key][name]:.2f}" for name in names)]
        for key, what in (("clock", "on the clock"), ("processor", "of processor time"))
    ]
    return table(["", *names], rows) + source("ratings_latency", result, note)


def service() -> str:
    result = load("service")
    times = result["milliseconds"]
    row = [
        str(result["requests"]),
        f"{result['answered_per_second']:.0f}",
        str(result["errors"]),
        *(f"{times[name]:.1f}" for name in ("median", "p99", "largest")),
    ]
    note = (
        f"{result['asked_per_second']} requests a second for {result['seconds']:.0f} s, new users "
        f"with {result['mean_ratings_in_a_request']:.0f} ratings on average, "
        f"{result['connections']} connections, {result['workers']} worker and the generator on "
        f"{result['facts']['cores']} cores; milliseconds from the moment a request was due."
    )
    heads = ["requests", "answered a second", "errors", "median", "p99", "largest"]
    return table(heads, [row]) + source("service", result, note)


def fits(study: dict) -> str:
    """Say with what the paper's two methods were fitted to the ratings."""
    regs = {method["method"]: method["reg"] for method in study["methods"]}
    return (
        f"CCOT-GW: KL loss, reg {regs['CCOT-GW']:g}, weights (.5, .5). CCOT: reg {regs['CCOT']:g} "
        "times the median cost. Both: authors' detector."
    )


def study(make: Callable[[dict], Table], note: Callable[[dict], str]) -> Callable[[], str]:
    def made() -> str:
        result = load("movielens_study")
        return make(result).markdown() + source("movielens_study", result, note(result))

    return made


TABLES: dict[str, Callable[[], str]] = (
    {
        "ratings_errors": ratings_errors,
        "ratings_lists": ratings_lists,
        "ratings_online": ratings_online,
        "ratings_latency": ratings_latency,
        "service": service,
        "study_agreement": study(lambda of: worded_table("movielens_nmi", of["nmi"]), fits),
    }
    | {
        f"study_{name}": study(getattr(movielens_page, f"table_of_{name}"), note)
        for name, note in dict.fromkeys(("ends", "paper_titles"), fits).items()
    }
    | {
        f"study_{name}": study(getattr(movielens_page, f"table_of_{name}"), lambda _: "")
        for name in ("methods", "blocks")
    }
    | {
        f"study_block_{side}": study(
            partial(movielens_page.table_of_clusters, side=side), lambda _: ""
        )
        for side in ("users", "movies")
    }
)
