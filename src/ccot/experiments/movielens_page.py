"""The page of the MovieLens study: figures, tables and plain statements, from its values."""

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from ccot.experiments.movielens import block_ratings
from ccot.experiments.page import Section, write_sections
from ccot.experiments.tables import TEXTS, Table, worded_table
from ccot.persistence.atomic import write_file
from ccot.plotting import new_figure, plot_scalings

_SIDES = "users", "movies"


def write_page(folder: Path, study: dict[str, Any], movies: Bunch, model: Any) -> Path:
    """Write the study as HTML and Markdown, with its figures."""
    curves, axes = new_figure(1, 2, size=(9, 3))
    plot_scalings(model, axes)
    sections = [
        Section(
            "Users and movies of each cluster, by CCOT-GW",
            [table_of_methods(study), worded_table("movielens_nmi", study["nmi"])],
            {"movielens_sizes": draw_sizes(study["methods"][0])},
        ),
        Section(
            "Ratings and their summary",
            [table_of_ends(study), table_of_paper_titles(study)],
            {"movielens_summary": draw_summary(movies, model), "movielens_curves": curves},
        ),
        Section(
            "Transport onto blocks on the same ratings",
            [*(table_of_clusters(study, side) for side in _SIDES), table_of_blocks(study)],
        ),
    ]
    settings = _settings(study)
    page = write_sections(folder, "movielens", sections, settings)
    write_file(folder / "movielens.md", _markdown(sections, settings))
    return page


def significance(study: dict[str, Any]) -> str:
    """Return the plain statement on how much the steps mean."""
    main = {side: study["methods"][0][side] for side in _SIDES}
    significant = " and ".join(
        f"{found['jumps_significant']} of the {found['clusters'] - 1} jumps along the {side}"
        for side, found in main.items()
    )
    by_test = " x ".join(str(found["clusters_by_test"]) for found in main.values())
    activity = {side: found["activity"] for side, found in main.items()}
    words: str = TEXTS["notes"]["significance"]
    return words.format(significant=significant, by_test=by_test, level=study["level"], **activity)


def draw_sizes(method: dict[str, Any]) -> Any:
    """Draw how many users and movies each cluster has."""
    figure, axes = new_figure(1, 2, size=(9, 3))
    for panel, side in zip(axes, _SIDES, strict=True):
        sizes = method[side]["sizes"]
        panel.bar(np.arange(1, len(sizes) + 1), sizes, color="0.4")
        panel.set(xlabel="cluster", ylabel=side, xticks=np.arange(1, len(sizes) + 1))
    return figure


def draw_summary(movies: Bunch, model: Any) -> Any:
    """Draw the reordered ratings beside the mean ratings of their blocks."""
    ratings = movies.data.toarray()
    rows = np.lexsort((model.row_log_scaling_, model.row_labels_))
    columns = np.lexsort((model.column_log_scaling_, model.column_labels_))
    known = np.where(ratings > 0, ratings, np.nan)
    means = np.array(block_ratings(movies, model)["mean_rating"])
    sizes = [np.bincount(labels) for labels in (model.row_labels_, model.column_labels_)]
    edges = [np.r_[0, side.cumsum()] for side in sizes]
    figure, axes = new_figure(1, 2, size=(11, 5))
    axes[0].imshow(known[rows][:, columns], aspect="auto", vmin=1, vmax=5, interpolation="nearest")
    means = np.where(means > 0, means, np.nan)
    shown = axes[1].pcolormesh(edges[1], edges[0], means, vmin=1, vmax=5)
    names = [[f"{k} ({size})" for k, size in enumerate(side, 1)] for side in sizes]
    middles = [(side[1:] + side[:-1]) / 2 for side in edges]
    axes[1].set_yticks(middles[0], names[0], fontsize=7)
    axes[1].set_xticks(middles[1], names[1], fontsize=7, rotation=90)
    axes[1].invert_yaxis()
    figure.colorbar(shown, ax=axes, label="rating")
    for panel in axes:
        panel.set(xlabel="movies", ylabel="users")
    return figure


def table_of_methods(study: dict[str, Any]) -> Table:
    """Return the numbers of clusters of each method, beside the paper."""
    rows = []
    for method in study["methods"]:
        sides = [method[side] for side in _SIDES]
        jumps = sum(found["clusters"] - 1 for found in sides)
        significant = sum(found["jumps_significant"] for found in sides)
        rows.append({**method, "jumps": jumps, "significant": significant})
    return worded_table("movielens_methods", rows, significance(study), *_settings(study))


def table_of_ends(study: dict[str, Any]) -> Table:
    """Return titles of the first and the last movie cluster, the paper's beside them."""
    rows = [
        {"cluster": listed["cluster"], "paper": paper, "rated": rated, "scaled": scaled}
        for end, listed in study["ends"].items()
        for paper, rated, scaled in zip(
            study["paper_titles"][end], listed["by_rating"], listed["by_scaling"], strict=True
        )
    ]
    return worded_table("movielens_top5", rows, groups=len(study["ends"]["first"]["by_rating"]))


def table_of_paper_titles(study: dict[str, Any]) -> Table:
    """Return where the titles of the paper are."""
    titles, printed = study["paper_titles"], {"first": 1, "last": 15}
    rows = [{**movie, "printed": printed[end]} for end in titles for movie in titles[end]]
    return worded_table("movielens_paper_titles", rows, groups=5)


def table_of_clusters(study: dict[str, Any], side: str) -> Table:
    """Return who the users, or what the movies, of each cluster of the blocks are."""
    rows = []
    for number, one in enumerate(study["blocks"][side], 1):
        ratios = {name: _ratios(one.get(name, [])) for name in ("occupations", "genres")}
        titles = "; ".join(one.get("most_rated", [])[:3])
        women = 100 * one.get("women", 0)
        rows.append({**one, **ratios, "number": number, "most_rated": titles, "women": women})
    return worded_table(f"movielens_block_{side}", rows)


def table_of_blocks(study: dict[str, Any]) -> Table:
    """Return how much is rated in each block, and how well."""
    blocks = study["blocks"]
    both = np.stack([blocks["share_rated"], blocks["mean_rating"]], axis=2)
    rows = [
        (f"U{number}", *(f"{100 * share:.1f} %, {mean:.2f}" for share, mean in of_user))
        for number, of_user in enumerate(both, 1)
    ]
    heads = ("", *(f"M{number}" for number in range(1, both.shape[1] + 1)))
    return worded_table("movielens_blocks", rows, heads=heads, **blocks)


def _ratios(named: list[list[Any]]) -> str:
    return ", ".join(f"{name} {ratio:.1f}" for name, ratio in named) or "as overall"


def _settings(study: dict[str, Any]) -> list[str]:
    draws = "32 draws (quick)" if study["quick"] else "500 draws"
    return [TEXTS["notes"]["movielens"].format(draws=draws, seed=study["seed"], ccot=study["ccot"])]


def _markdown(sections: list[Section], settings: list[str]) -> str:
    parts = ["# The paper's study of MovieLens-100K"]
    for section in sections:
        parts.append(f"## {section.title}")
        parts += [f"![{TEXTS['pictures'][name]}]({name}.png)" for name in section.pictures]
        parts += [table.markdown() for table in section.tables]
    return "\n\n".join([*parts, *settings]) + "\n"
