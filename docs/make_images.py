"""Draw the pictures of README and docs from the library itself: ``python docs/make_images.py``."""

import io
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image
from stored import load

from ccot import CCOT, TransportCoclustering, detect_jumps
from ccot.datasets import load_simulated, load_zoo
from ccot.experiments.protocol import Protocol
from ccot.experiments.sections import draw_scalings
from ccot.metrics import coclustering_error
from ccot.plotting import PALETTE, new_figure, plot_blocks, plot_merge_costs, plot_scalings
from ccot.scalings.costs import square_costs, typical_cost
from ccot.transport.sinkhorn import sinkhorn

IMAGES = Path(__file__).parent / "images"
LARGEST = 150_000


def save(figure, name: str, n_colours: int = 96) -> None:
    """Save with few colours: small enough to live in the repository."""
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=110)
    buffer.seek(0)
    image = Image.open(buffer).convert("RGB").quantize(n_colours, dither=Image.Dither.NONE)
    IMAGES.mkdir(exist_ok=True)
    image.save(IMAGES / name, optimize=True)
    size = (IMAGES / name).stat().st_size
    assert size < LARGEST, f"{name} takes {size} bytes: draw it smaller or with fewer colours"
    print(f"{name}: {size / 1000:.0f} kB")


def blocks() -> None:
    """The first picture: before, after, and the steps in between."""
    matrix = load_simulated("D2", random_state=0).data
    model = CCOT(random_state=0).fit(matrix)
    figure, axes = new_figure(1, 3, size=(11, 3.5), gridspec_kw={"width_ratios": (3, 3.2, 3.6)})
    plot_blocks(model, matrix, before=True, ax=axes[0], colorbar=False, max_pixels=240)
    axes[0].set_title("a matrix, as given")
    scratch = new_figure()[1]
    plot_scalings(model, [axes[1], scratch])
    axes[1].set_title("sorted row scalings: 3 steps")
    axes[1].set_xlabel("rows, sorted")
    plot_blocks(model, matrix, ax=axes[2], max_pixels=240)
    axes[2].set_title("the same matrix: 3 x 3 blocks")
    save(figure, "blocks.png", 160)


def method() -> None:
    """CCOT in four panels: draw, cost, coupling, steps."""
    truth = load_simulated("D2", random_state=0)
    draw = np.random.default_rng(0).choice(600, size=300, replace=False)
    square = truth.data[draw]
    costs = square_costs(square[None])
    unit = typical_cost(costs)
    cost = costs.full()[0]
    answer = sinkhorn(-cost / (0.2 * unit))
    coupling = np.exp(answer.log_row[:, None] - cost / (0.2 * unit) + answer.log_column)
    rows, columns = np.argsort(answer.log_row), np.argsort(answer.log_column)

    figure, axes = new_figure(1, 4, size=(12, 3.6))
    thin = slice(None, None, 2)
    axes[0].imshow(square[thin, thin], cmap="viridis", interpolation="nearest")
    axes[0].set_title("1. a square draw D")
    axes[1].imshow(cost[thin, thin], cmap="magma", interpolation="nearest")
    axes[1].set_title("2. cost M: row to column")
    ranked = answer.log_row[rows]
    jumps = detect_jumps(ranked)
    steps = np.split(np.arange(len(ranked)), jumps)
    for k, step in enumerate(steps):
        axes[2].plot(step, ranked[step], ".", color=PALETTE[k])
    for jump in jumps:
        axes[2].axvline(jump - 0.5, color="#222222", linestyle="--", linewidth=1)
    axes[2].set_title("3. sorted log row scalings")
    axes[2].spines[["top", "right"]].set_visible(False)
    axes[3].imshow(np.log(coupling[np.ix_(rows, columns)]), cmap="cividis")
    axes[3].set_title("4. coupling, sorted")
    axes[2].set_box_aspect(1)
    for ax in axes[[0, 1, 3]]:
        ax.set_axis_off()
    save(figure, "method.png", 160)


def averages(values: np.ndarray, size: int) -> np.ndarray:
    starts = np.arange(0, len(values), size)
    return np.add.reduceat(values, starts) / np.diff(np.append(starts, len(values)))


def detector() -> None:
    """F at several scales, on values with steps and on a smooth sample."""
    rng = np.random.default_rng(3)
    stepped = np.sort(np.repeat([0.0, 1.4, 2.1], [70, 40, 90]) + 0.06 * rng.normal(size=200))
    smooth = np.sort(rng.normal(size=200))
    figure, axes = new_figure(2, 2, size=(10, 5.2), sharex=True)
    for column, (values, name) in enumerate(((stepped, "three steps"), (smooth, "a normal law"))):
        top, bottom = axes[:, column]
        ours = detect_jumps(values)
        theirs = detect_jumps(values, method="authors")
        top.plot(values, ".", color=PALETTE[0], markersize=5)
        for jumps, colour, style in ((theirs, PALETTE[1], "-"), (ours, "#222222", "--")):
            for jump in jumps:
                top.axvline(jump - 0.5, color=colour, linestyle=style, linewidth=1.4)
        top.set_title(f"{name}: {len(ours)} jumps accepted (authors' code: {len(theirs)})")
        for k, size in enumerate((1, 2, 4, 8, 16)):
            coarse = np.pad(averages(values, size), 1, mode="edge")
            cost = coarse[2:] - coarse[:-2]
            place = (np.arange(len(cost)) + 0.5) * size
            bottom.fill_between(place, k, k + 0.9 * cost / cost.max(), color=PALETTE[k], lw=0)
        bottom.set(xlabel="sorted values")
        bottom.set_yticks(np.arange(5), ["1", "2", "4", "8", "16"])
    axes[0, 0].set_ylabel("value")
    axes[1, 0].set_ylabel("F at averages of ...")
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
    save(figure, "detector.png")


def noise() -> None:
    """The steps of D1 as noise grows; colours are the true classes."""
    sigmas = (0.01, 0.1, 0.3, 3.0)
    figure, axes = new_figure(1, len(sigmas), size=(12, 3.1))
    for ax, sigma in zip(axes, sigmas, strict=True):
        truth = load_simulated("D1", random_state=0, sigma=sigma)
        model = CCOT(random_state=0).fit(truth.data)
        error = coclustering_error(
            truth.row_labels, truth.column_labels, model.row_labels_, model.column_labels_
        )
        order = np.argsort(model.row_log_scaling_)
        for k in range(3):
            here = np.flatnonzero(truth.row_labels[order] == k)
            ax.plot(here, model.row_log_scaling_[order][here], ".", color=PALETTE[k], markersize=4)
        numbers = f"{model.n_row_clusters_} x {model.n_column_clusters_}"
        ax.set_title(f"sigma {sigma:g}: {numbers} blocks,\nerror {error:.2f}")
        ax.set_xlabel("rows, sorted")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("log scaling")
    save(figure, "noise.png")


def noisy_blocks() -> None:
    """D1 at the calibrated noise: before, after, and the means of the blocks."""
    truth = load_simulated("D1", random_state=0, overlap="calibrated")
    model = TransportCoclustering(random_state=0).fit(truth.data)
    error = coclustering_error(
        truth.row_labels, truth.column_labels, model.row_labels_, model.column_labels_
    )
    figure, axes = new_figure(1, 3, size=(11, 3.6))
    plot_blocks(model, truth.data, before=True, ax=axes[0], colorbar=False, max_pixels=110)
    axes[0].set_title(f"D1 with noise of sigma {truth.sigma:g}")
    plot_blocks(model, truth.data, ax=axes[1], colorbar=False, max_pixels=110)
    numbers = f"{model.n_row_clusters_} x {model.n_column_clusters_}"
    axes[1].set_title(f"ordered: {numbers} blocks, error {error:.3f}")
    averaged = model.block_means_[np.ix_(model.row_labels_, model.column_labels_)]
    plot_blocks(model, averaged, ax=axes[2], max_pixels=110)
    axes[2].set_title("block means")
    save(figure, "noisy.png", 64)


def animals() -> None:
    """The zoo with names: what a reader is to expect."""
    zoo = load_zoo()
    table = pd.DataFrame(zoo.data, index=zoo.row_names, columns=zoo.column_names)
    model = TransportCoclustering(random_state=0).fit(table)
    figure, ax = new_figure(size=(10, 7))
    known = {"class": zoo.annotations["class"]}
    options = {"names": True, "dendrograms": True, "row_colors": known, "colorbar": False}
    plot_blocks(model, table, ax=ax, cmap="RdBu_r", **options)
    numbers = f"{model.n_row_clusters_} x {model.n_column_clusters_}"
    ax.set_title(f"{len(table)} animals and {table.shape[1]} traits: {numbers} blocks")
    save(figure, "animals.png", 128)


def merge_costs() -> None:
    """Merge costs with the chosen cut, with structure at one scale."""
    truth = load_simulated("D1", random_state=0, overlap="calibrated")
    model = TransportCoclustering(random_state=0).fit(truth.data)
    figure, axes = new_figure(1, 2, size=(10, 3.4))
    plot_merge_costs(model, axes)
    save(figure, "merge_costs.png")


def scalings_d3() -> None:
    """The paper's figure 2: sorted scalings of D3 by CCOT, at both noises."""
    save(draw_scalings(Protocol()), "scalings_d3.png")


def movielens_blocks() -> None:
    """The paper's figure 4b from the stored study: mean ratings of blocks, and their sizes."""
    means = np.array(load("movielens_settings")["mean_rating"])
    main = load("movielens_study")["methods"][0]
    sizes = [main[side]["sizes"] for side in ("users", "movies")]
    edges = [np.r_[0, np.cumsum(side)] for side in sizes]
    figure, ax = new_figure(size=(9, 4.5))
    shown = ax.pcolormesh(edges[1], edges[0], np.where(means > 0, means, np.nan), vmin=1, vmax=5)
    names = [[f"{k} ({size})" for k, size in enumerate(side, 1)] for side in sizes]
    middles = [(side[1:] + side[:-1]) / 2 for side in edges]
    ax.set_yticks(middles[0], names[0], fontsize=8)
    ax.set_xticks(middles[1], names[1], fontsize=8, rotation=90)
    ax.invert_yaxis()
    ax.set(xlabel="movie clusters (movies)", ylabel="user clusters (users)")
    figure.colorbar(shown, ax=ax, label="mean rating")
    save(figure, "movielens_blocks.png")


PICTURES = (animals, blocks, method, detector, noise, noisy_blocks, merge_costs, scalings_d3,
            movielens_blocks)  # fmt: skip

if __name__ == "__main__":
    # Named ones only, if any are named.
    for draw_picture in PICTURES:
        if draw_picture.__name__ in (sys.argv[1:] or [draw_picture.__name__]):
            draw_picture()
