"""The page of the MovieLens study: figures, tables and plain statements, from its values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from ccot.experiments.movielens import block_ratings
from ccot.experiments.page import Picture, Section, write_sections
from ccot.experiments.tables import Table
from ccot.persistence.atomic import write_atomically
from ccot.plotting import new_figure, plot_scalings

_PAPER_MOVIE_CLUSTERS = 15


def write_page(folder: Path, study: dict[str, Any], movies: Bunch, model: Any) -> Path:
    """Write the study as HTML and Markdown, with its figures."""
    sections = [
        Section(
            "Users and movies of each cluster, by CCOT-GW",
            tables=[table_of_methods(study), table_of_agreement(study)],
            pictures=[Picture("movielens_sizes", _SIZES, draw_sizes(study["methods"][0]))],
        ),
        Section(
            "Ratings and their summary",
            tables=[table_of_ends(study), table_of_paper_titles(study)],
            pictures=[
                Picture("movielens_summary", _SUMMARY, draw_summary(movies, model)),
                Picture("movielens_curves", _CURVES, draw_curves(model)),
            ],
        ),
        Section(
            "Transport onto blocks on the same ratings",
            [table_of_block_users(study), table_of_block_movies(study), table_of_blocks(study)],
        ),
    ]
    settings = _settings(study)
    page = write_sections(folder, "movielens", sections, settings)
    with write_atomically(folder / "movielens.md", "w") as file:
        file.write(_markdown(sections, settings))
    return page


_SIZES = "Figure 3: users (a) and movies (b) in each cluster of CCOT-GW."
_SUMMARY = (
    "Figure 4: the ratings in the order of the clusters (a), and the mean rating of each block, as "
    "large as it is (b); missing ratings are left out, light is high, white has none."
)
_CURVES = "Sorted logarithms of the scalings, and the jumps that the authors' detector reports."


def significance(study: dict[str, Any]) -> str:
    """Return the plain statement on how much the steps mean."""
    main = study["methods"][0]
    significant = " and ".join(
        f"{main[side]['jumps_significant']} of the {main[side]['clusters'] - 1} jumps along the "
        f"{side}"
        for side in ("users", "movies")
    )
    by_test = " x ".join(str(main[side]["clusters_by_test"]) for side in ("users", "movies"))
    return (
        f"How much the steps mean: the sorted scalings of these ratings are smooth. Tested against "
        f"the spacing of the values around them, {significant} are significant at level "
        f"{study['level']:g}; the default detector reads {by_test} clusters off the same curves. "
        f"The rank correlation of the scalings with the number of ratings is "
        f"{main['users']['activity']:+.2f} (users) and {main['movies']['activity']:+.2f} (movies): "
        "the clusters order users and movies by how much they rate and are rated, and where a "
        "jump is not significant, the place of the cut is an irregularity of the curve and no gap "
        "between groups."
    )


def draw_sizes(method: dict[str, Any]) -> Any:
    """Draw how many users and movies each cluster has."""
    figure, axes = new_figure(1, 2, size=(9, 3))
    for panel, side in zip(axes, ("users", "movies"), strict=True):
        sizes = method[side]["sizes"]
        panel.bar(np.arange(1, len(sizes) + 1), sizes, color="0.4")
        panel.set(xlabel="cluster", ylabel=side, xticks=np.arange(1, len(sizes) + 1))
    return figure


def draw_summary(movies: Bunch, model: Any) -> Any:
    """Draw the reordered ratings beside the mean ratings of their blocks."""
    ratings = movies.data.toarray()
    rows, columns = (
        np.lexsort((scaling, labels))
        for scaling, labels in (
            (model.row_log_scaling_, model.row_labels_),
            (model.column_log_scaling_, model.column_labels_),
        )
    )
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


def draw_curves(model: Any) -> Any:
    """Draw the sorted scalings with the jumps."""
    figure, axes = new_figure(1, 2, size=(9, 3))
    plot_scalings(model, axes)
    return figure


def table_of_methods(study: dict[str, Any]) -> Table:
    """Return the numbers of clusters of each method, beside the paper."""
    rows = [("paper", "cross-validated", "9 x 15", "", "")]
    for method in study["methods"]:
        users, movies = method["users"], method["movies"]
        jumps = users["clusters"] + movies["clusters"] - 2
        numbers, by_test = (
            f"{users[key]} x {movies[key]}" for key in ("clusters", "clusters_by_test")
        )
        significant = f"{users['jumps_significant'] + movies['jumps_significant']} of {jumps}"
        rows.append((method["method"], f"{method['reg']:.3g}", numbers, significant, by_test))
    return Table(
        "movielens_methods",
        "Clusters of users and movies by the authors' detector, and what a test leaves of them",
        ("method", "reg", "users x movies", "jumps significant", "by the default detector"),
        rows,
        notes=[significance(study), *_settings(study)],
    )


def table_of_agreement(study: dict[str, Any]) -> Table:
    """Return how far the methods agree."""
    rows = [("paper: CCOT-GW and CCOT", "above .8", "above .8")]
    rows += [
        (" and ".join(pair["methods"]), f"{pair['users']:.2f}", f"{pair['movies']:.2f}")
        for pair in study["nmi"]
    ]
    caption = "Normalised mutual information of partitions"
    return Table("movielens_nmi", caption, ("methods", "users", "movies"), rows)


def table_of_ends(study: dict[str, Any]) -> Table:
    """Return titles of the first and the last movie cluster, the paper's beside them."""
    rows = [
        (f"M{listed['cluster']}", paper["title"], _one(rated), _one(scaled))
        for end, listed in study["ends"].items()
        for paper, rated, scaled in zip(
            study["paper_titles"][end], listed["by_rating"], listed["by_scaling"], strict=True
        )
    ]
    return Table(
        "movielens_top5",
        "Table 3: five movies of the first and of the last movie cluster",
        ("cluster", "paper", "by mean rating (number of ratings)", "by scaling"),
        rows,
        groups=len(study["ends"]["first"]["by_rating"]),
    )


def table_of_paper_titles(study: dict[str, Any]) -> Table:
    """Return where the titles of the paper are."""
    rows = [
        (f"M{1 if end == 'first' else _PAPER_MOVIE_CLUSTERS}", movie["title"],
         f"M{movie['cluster']}", str(movie["rank"]))
        for end, titles in study["paper_titles"].items()
        for movie in titles
    ]  # fmt: skip
    return Table(
        "movielens_paper_titles",
        "The ten titles of the paper, and where they are here",
        ("paper", "title", "cluster here", "place by scaling, of 1682"),
        rows,
        notes=["The paper calls them the best rated of their clusters; by mean rating they are "
               "not. The authors' own program gives the same 9 x 15 clusters, with the same "
               "members, at this setting (KL loss, reg 1)."],
        groups=5,
    )  # fmt: skip


def table_of_block_users(study: dict[str, Any]) -> Table:
    """Return who the users of each block are."""
    rows = [
        (f"U{number}", str(one["size"]), f"{one['median_ratings']:.0f}",
         f"{one['mean_rating']:.2f}", f"{one['median_age']:.0f}", f"{100 * one['women']:.0f} %",
         _ratios(one["occupations"]), _ratios(one["genres"]))
        for number, one in enumerate(study["blocks"]["users"], 1)
    ]  # fmt: skip
    return Table(
        "movielens_block_users",
        "Who the user clusters of TransportCoclustering are",
        ("cluster", "users", "median ratings", "mean rating", "median age", "women",
         "occupations", "genres watched"),
        rows,
        notes=["Behind occupations and genres: how many times their share among all users "
               "(ratings); those above 1.2 (1.1) are named."],
    )  # fmt: skip


def table_of_block_movies(study: dict[str, Any]) -> Table:
    """Return what the movies of each block are."""
    rows = [
        (f"M{number}", str(one["size"]), f"{one['median_ratings']:.0f}",
         f"{one['mean_rating']:.2f}", f"{one['median_year']:.0f}", _ratios(one["genres"]),
         "; ".join(one["most_rated"][:3]))
        for number, one in enumerate(study["blocks"]["movies"], 1)
    ]  # fmt: skip
    return Table(
        "movielens_block_movies",
        "What the movie clusters of TransportCoclustering are",
        ("cluster", "movies", "median ratings", "mean rating", "median year", "genres",
         "most rated"),
        rows,
    )  # fmt: skip


def table_of_blocks(study: dict[str, Any]) -> Table:
    """Return how much is rated in each block, and how well."""
    blocks = study["blocks"]
    rows = [
        (f"U{number}", *(f"{100 * share:.1f} %, {mean:.2f}"
                         for share, mean in zip(shares, means, strict=True)))
        for number, (shares, means) in enumerate(
            zip(blocks["share_rated"], blocks["mean_rating"], strict=True), 1
        )
    ]  # fmt: skip
    return Table(
        "movielens_blocks",
        "Share of the pairs in each block that were rated, and their mean rating",
        ("", *(f"M{number}" for number in range(1, len(blocks["share_rated"][0]) + 1))),
        rows,
        notes=[f"Family {blocks['family']}: {blocks['reason']}. The blocks tell who watches what; "
               "mean ratings differ far less between them than shares do."],
    )  # fmt: skip


def _one(movie: dict[str, Any]) -> str:
    return f"{movie['title']}: {movie['mean_rating']:.2f} ({movie['ratings']})"


def _ratios(named: list[list[Any]]) -> str:
    return ", ".join(f"{name} {ratio:.1f}" for name, ratio in named) or "as overall"


def _settings(study: dict[str, Any]) -> list[str]:
    draws = "32 draws (quick)" if study["quick"] else "500 draws"
    return [
        f"Missing ratings are 0 for the transport, as in the paper, and left out of means. "
        f"CCOT-GW: KL loss, weights (.5, .5). CCOT: {draws}, reg by cross-validation. Seed "
        f"{study['seed']}, ccot {study['ccot']}."
    ]


def _markdown(sections: list[Section], settings: list[str]) -> str:
    parts = ["# The paper's study of MovieLens-100K"]
    for section in sections:
        parts.append(f"## {section.title}")
        parts += [f"![{picture.caption}]({picture.name}.png)" for picture in section.pictures]
        parts += [table.markdown() for table in section.tables]
    return "\n\n".join([*parts, *settings]) + "\n"
