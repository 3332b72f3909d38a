"""Figures: what they show, that they draw into the axes they are given, and how they refuse."""

import copy
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from ccot import CCOT, CCOTGW, TransportCoclustering
from ccot.baselines import DoubleKMeans
from ccot.datasets import load_zoo, make_latent_blocks
from ccot.plotting import (
    PALETTE,
    new_figure,
    plot_block_means,
    plot_blocks,
    plot_confidence,
    plot_dots,
    plot_merge_costs,
    plot_reg_path,
    plot_reproducibility,
    plot_scalings,
)
from ccot.plotting.blocks import _shrink
from ccot.plotting.margins import as_tracks, leaf_order, merge_tree


@pytest.fixture(scope="module", autouse=True)
def no_window():
    import matplotlib

    before = matplotlib.get_backend()
    matplotlib.use("Agg")
    yield
    matplotlib.pyplot.close("all")
    matplotlib.use(before)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    import matplotlib.pyplot

    matplotlib.pyplot.close("all")


@pytest.fixture(scope="module")
def blocks():
    means = [[4, 0, 2], [1, 5, 1]]
    return make_latent_blocks(means, 90, 60, sigma=0.02, random_state=0)


@pytest.fixture(scope="module")
def model(blocks):
    return CCOT(random_state=0).fit(blocks.data)


@pytest.fixture(scope="module")
def smooth():
    return CCOT(random_state=0).fit(np.random.default_rng(0).normal(size=(60, 40)))


@pytest.fixture(scope="module")
def noisy():
    means = [[4, 0, 2], [1, 5, 1]]
    return make_latent_blocks(means, 90, 60, sigma=1.0, random_state=0).data


@pytest.fixture(scope="module")
def transported(noisy):
    return TransportCoclustering(random_state=0).fit(noisy)


def drawn(ax):
    """The picture in the axes, after the figure was really rendered."""
    ax.figure.canvas.draw()
    return ax.images[0].get_array()


def texts(ax):
    return [text.get_text() for text in ax.texts]


def test_blocks_are_constant_after_reordering(model, blocks):
    _, ax = new_figure()
    image = drawn(plot_blocks(model, blocks.data, ax=ax))
    rows = np.sort(model.row_labels_)
    columns = np.sort(model.column_labels_)
    for k in range(2):
        for m in range(3):
            block = image[rows == k][:, columns == m]
            assert np.ptp(block) < 0.3
            assert block.mean() == pytest.approx(model.block_means_[k, m])


def test_clusters_without_names_are_numbered(model, blocks):
    kernels = (blocks.data @ blocks.data.T, blocks.data.T @ blocks.data)
    with pytest.warns(ConvergenceWarning):
        similar = CCOTGW(2, 3, random_state=0, max_iter=1).fit_kernels(*kernels)
    texts = {text for text, _ in written(plot_blocks(similar, blocks.data, names=True).figure)}
    sizes = enumerate(np.bincount(similar.row_labels_))
    assert {f"{cluster} ({size})" for cluster, size in sizes} <= texts


def test_before_shows_the_matrix_as_it_is(model, blocks):
    _, ax = new_figure()
    np.testing.assert_array_equal(
        drawn(plot_blocks(model, blocks.data, before=True, ax=ax)), blocks.data
    )
    assert ax.get_title() == "as given"


def test_borders_lie_between_clusters(model, blocks):
    _, ax = new_figure()
    plot_blocks(model, blocks.data, ax=ax)
    heights = {line.get_ydata()[0] for line in ax.lines if line.get_xdata()[0] == 0}
    assert np.bincount(model.row_labels_)[0] in heights
    sizes = [f"{k} ({size})" for k, size in enumerate(np.bincount(model.column_labels_))]
    assert [label.get_text() for label in ax.get_xticklabels()] == sizes


def test_sparse_and_dense_give_one_picture(model, blocks):
    pictures = []
    for matrix in (blocks.data, sp.csr_array(blocks.data), sp.csc_matrix(blocks.data)):
        _, ax = new_figure()
        pictures.append(drawn(plot_blocks(model, matrix, ax=ax, colorbar=False)))
    np.testing.assert_allclose(pictures[1], pictures[0], rtol=1e-15)
    np.testing.assert_allclose(pictures[2], pictures[0], rtol=1e-15)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize(("height", "width"), [(3, 4), (7, 11), (4, 100)])
def test_shrinking_averages(make, height, width):
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(7, 11))
    row_order, column_order = rng.permutation(7), rng.permutation(11)
    image = _shrink(make(matrix), (row_order, column_order), min(height, width))
    ordered = matrix[row_order][:, column_order]
    pixels = min(height, width)
    expected = np.array(
        [
            [
                ordered[np.ix_(_members(7, pixels, i), _members(11, pixels, j))].mean()
                for j in range(min(11, pixels))
            ]
            for i in range(min(7, pixels))
        ]
    )
    np.testing.assert_allclose(image, expected, rtol=1e-12)


def test_columns_that_were_left_out_are_not_drawn():
    matrix = np.arange(60.0).reshape(12, 5)
    image = _shrink(matrix, (np.arange(12), np.array([4, 0, 2])), 6)
    np.testing.assert_allclose(image, matrix.reshape(6, 2, 5).mean(axis=1)[:, [4, 0, 2]])


def _members(n_points, pixels, pixel):
    pixels = min(pixels, n_points)
    return [i for i in range(n_points) if i * pixels // n_points == pixel]


def test_large_sparse_matrices_are_shown_at_reduced_resolution(smooth):
    matrix = sp.random_array(
        (3000, 1200), density=0.01, random_state=np.random.default_rng(0)
    ).tocsr()
    large = copy.copy(smooth)
    for side, size in zip(("row", "column"), matrix.shape, strict=True):
        setattr(large, f"{side}_labels_", np.zeros(size, dtype=int))
        setattr(large, f"{side}_log_scaling_", np.zeros(size))
    _, ax = new_figure()
    image = drawn(plot_blocks(large, matrix, ax=ax, max_pixels=300))
    assert image.shape == (300, 300)
    assert image.mean() == pytest.approx(matrix.mean())


def test_a_matrix_of_another_shape_is_refused(model, blocks):
    with pytest.raises(ValueError, match="fitted to a matrix of shape"):
        plot_blocks(model, blocks.data.T)


def test_max_pixels_must_be_positive(model, blocks):
    with pytest.raises(ValueError, match="max_pixels"):
        plot_blocks(model, blocks.data, max_pixels=0)


def test_constant_and_mostly_empty_matrices_can_be_shown():
    matrix = np.zeros((12, 9))
    matrix[0, 0] = 1
    model = CCOT(random_state=0).fit(matrix)
    _, ax = new_figure()
    assert drawn(plot_blocks(model, matrix, ax=ax)).max() == 1
    _, ax = new_figure()
    drawn(plot_blocks(model, np.zeros((12, 9)), ax=ax))


def test_jumps_are_marked_with_their_evidence(model):
    _, axes = new_figure(1, 2)
    rows, columns = plot_scalings(model, axes)
    for ax, jumps in ((rows, model.row_jumps_), (columns, model.column_jumps_)):
        lines = [line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == "--"]
        np.testing.assert_allclose(lines, jumps - 0.5)
        assert len([text for text in texts(ax) if "p <" in text]) == len(jumps)
    colours = [line.get_color() for line in columns.lines if line.get_marker() == "."]
    assert colours == list(PALETTE[:3])


def test_smooth_curves_are_called_so(smooth):
    _, axes = new_figure(1, 2)
    for ax in plot_scalings(smooth, axes):
        assert texts(ax) == ["no jump is significant"]


def test_jumps_that_were_only_asked_for_are_not_called_significant():
    matrix = np.random.default_rng(0).normal(size=(60, 40))
    asked = CCOT(n_row_clusters=3, n_column_clusters=1, random_state=0).fit(matrix)
    _, axes = new_figure(1, 2)
    rows, columns = plot_scalings(asked, axes)
    assert texts(rows) == ["not significant"] * 2
    assert texts(columns) == []


def test_the_authors_detector_has_no_p_values(blocks):
    model = CCOTGW(detector="authors", exact_refinement=False).fit(blocks.data)
    _, axes = new_figure(1, 2)
    assert not any(texts(ax) and "p <" in texts(ax)[0] for ax in plot_scalings(model, axes))


def test_block_means_are_written_into_their_cells(model):
    _, ax = new_figure()
    plot_block_means(model, ax)
    assert len(ax.texts) == 6
    written = {tuple(text.get_position()): float(text.get_text()) for text in ax.texts}
    assert written[(2, 1)] == pytest.approx(model.block_means_[1, 2], rel=1e-2)


def test_block_means_need_a_matrix():
    model = CCOTGW(exact_refinement=False).fit_kernels(np.eye(6) + 1, np.eye(5) + 1)
    with pytest.raises(ValueError, match="no block means"):
        plot_block_means(model)


def test_confidence_covers_everyone(model):
    _, axes = new_figure(1, 2)
    rows, _ = plot_confidence(model, axes)
    assert len(rows.patches) == 2
    areas = [patch.get_data().values.sum() for patch in rows.patches]
    assert sum(areas) == pytest.approx(model.row_confidence_.sum())


def test_reg_path_marks_the_chosen_value(blocks):
    model = CCOT(reg="cv", random_state=0).fit(blocks.data)
    _, ax = new_figure()
    plot_reg_path(model, ax)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert f"chosen: {model.reg_:g}" in labels


def test_reg_path_needs_a_path(model):
    with pytest.raises(ValueError, match='reg="cv"'):
        plot_reg_path(model)


def test_merge_costs_are_parted_at_the_chosen_number(transported):
    _, axes = new_figure(1, 2)
    panels = plot_merge_costs(transported, axes)
    for ax, number, costs in (
        (panels[0], transported.n_row_clusters_, transported.row_merge_costs_),
        (panels[1], transported.n_column_clusters_, transported.column_merge_costs_),
    ):
        refused, granted = (line for line in ax.lines if line.get_marker() == "o")
        np.testing.assert_array_equal(refused.get_xdata(), np.arange(2, number + 1))
        np.testing.assert_allclose(refused.get_ydata(), costs[: number - 1])
        assert min(granted.get_xdata()) == number + 1
        assert [line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == "--"] == [
            number + 0.5
        ]
        ax.figure.canvas.draw()
    assert panels[0].get_title() == "rows: 2 clusters"


def test_merge_costs_of_a_constant_matrix_can_be_shown():
    model = TransportCoclustering(random_state=0).fit(np.ones((6, 5)))
    _, axes = new_figure(1, 2)
    for ax in plot_merge_costs(model, axes):
        ax.figure.canvas.draw()
        assert ax.get_title().endswith("1 cluster")


def test_merge_costs_and_scalings_know_their_estimators(model, transported):
    with pytest.raises(ValueError, match="has no merge costs"):
        plot_merge_costs(model)
    with pytest.raises(ValueError, match="use plot_merge_costs"):
        plot_scalings(transported)


def test_transported_blocks_are_shown_from_sure_to_unsure(transported, noisy):
    _, ax = new_figure()
    image = drawn(plot_blocks(transported, noisy, ax=ax))
    order = np.lexsort((-transported.row_confidence_, transported.row_labels_))
    columns = np.lexsort((-transported.column_confidence_, transported.column_labels_))
    np.testing.assert_array_equal(image, noisy[np.ix_(order, columns)])


def test_confidence_without_votes(transported):
    _, axes = new_figure(1, 2)
    rows, _ = plot_confidence(transported, axes)
    assert rows.get_title() == "rows: 2 clusters"


@pytest.mark.parametrize("max_pixels", [10, 1000])
def test_missing_entries_stay_blank(transported, noisy, max_pixels):
    holes = noisy.copy()
    holes[transported.row_labels_ == 0] = np.nan
    _, ax = new_figure()
    image = drawn(plot_blocks(transported, holes, ax=ax, max_pixels=max_pixels))
    share = (transported.row_labels_ == 0).mean()
    assert np.isnan(np.ma.filled(image, np.nan)).mean() == pytest.approx(share, abs=0.1)
    assert np.ma.masked_invalid(image).max() <= noisy.max()


def test_two_panels_need_two_axes(model):
    _, ax = new_figure()
    with pytest.raises(ValueError, match="two axes"):
        plot_scalings(model, [ax])


def test_figures_are_made_where_no_axes_are_given(model, blocks):
    assert plot_blocks(model, blocks.data).images
    assert len(plot_scalings(model)) == 2
    assert len(plot_confidence(model)) == 2
    assert plot_block_means(model).texts


def test_unfitted_estimators_are_refused(blocks):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        plot_blocks(CCOT(), blocks.data)


def test_without_matplotlib_the_message_names_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'ccot\[report\]'"):
        new_figure()


def test_reproducibility_is_drawn_for_every_number_looked_at():
    rng = np.random.default_rng(0)
    X = np.kron(rng.normal(size=(3, 4)), np.ones((20, 10))) + 0.5 * rng.normal(size=(60, 40))
    model = TransportCoclustering(criterion="reproducibility", random_state=0).fit(X)
    _, axes = new_figure(1, 2)
    panels = plot_reproducibility(model, axes)
    for panel, side in zip(panels, ("row", "column"), strict=True):
        told = getattr(model.reproducibility_, side)
        drawn = panel.containers[0].lines[0]
        assert drawn.get_xdata().tolist() == told.numbers.tolist()
        assert np.allclose(drawn.get_ydata(), told.mean)
        assert panel.get_title() == f"{side}s: {told.n_clusters} clusters"
    with pytest.raises(ValueError, match="did not estimate"):
        plot_reproducibility(TransportCoclustering(criterion="icl", random_state=0).fit(X))


# Names, colours and trees ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def zoo():
    shipped = load_zoo()
    frame = pd.DataFrame(shipped.data, index=shipped.row_names, columns=shipped.column_names)
    return frame, shipped.annotations["class"], TransportCoclustering(random_state=0).fit(frame)


def written(figure):
    """Every text of a figure that is seen, with its box in pixels."""
    import matplotlib.axis
    import matplotlib.text

    figure.draw_without_rendering()
    # Ticks beyond the ends of an axis are there, but not drawn.
    ticks = {
        label: tick in drawn
        for axis in figure.findobj(matplotlib.axis.Axis)
        for drawn in [axis._update_ticks()]
        for tick in axis.majorTicks + axis.minorTicks
        for label in (tick.label1, tick.label2)
    }
    shown = [
        text
        for text in figure.findobj(matplotlib.text.Text)
        if text.get_text().strip() and text.get_visible() and ticks.get(text, True)
    ]
    return [(text.get_text(), text.get_window_extent()) for text in shown]


def clashes(figure):
    """Pairs of texts of which one is written over the other, and texts beyond the edge."""
    boxes, edge = written(figure), figure.bbox.padded(1)
    pairs = [
        (first, second)
        for i, (first, a) in enumerate(boxes)
        for second, b in boxes[i + 1 :]
        if min(a.x1, b.x1) - max(a.x0, b.x0) > 1 and min(a.y1, b.y1) - max(a.y0, b.y0) > 1
    ]
    corners = ((text, corner) for text, box in boxes for corner in box.corners())
    return pairs + [text for text, corner in corners if not edge.contains(*corner)]


def many_blocks(n_rows, n_columns, seed=0):
    """A matrix of named rows and columns in clusters of unequal sizes, and its model."""
    rng = np.random.default_rng(seed)
    labels = [np.sort(np.r_[np.arange(k), rng.integers(0, k, 2 * k)]) for k in (n_rows, n_columns)]
    means = 3 * rng.normal(size=(n_rows, n_columns))
    matrix = means[np.ix_(*labels)] + 0.1 * rng.normal(size=tuple(map(len, labels)))
    names = [[f"{side} called {i}" for i in range(n)]
             for side, n in zip(("sample", "measurement"), matrix.shape, strict=True)]  # fmt: skip
    frame = pd.DataFrame(matrix, index=names[0], columns=names[1])
    options = {"criterion": "icl", "n_init": 1, "center": "none", "random_state": 0}
    return frame, TransportCoclustering(n_rows, n_columns, **options).fit(frame)


@pytest.mark.parametrize(
    "shape",
    [(3, 2), (12, 9), *(pytest.param((k, k), marks=pytest.mark.slow) for k in (30, 40))],
)
def test_no_text_is_written_over_another(shape):
    frame, model = many_blocks(*shape)
    kinds = [f"kind {label % 5}" for label in model.row_labels_]
    known = {"kind": kinds, "place": np.arange(len(frame)) / 7}
    figures = [
        plot_blocks(model, frame),
        plot_blocks(model, frame, names=True),
        plot_blocks(model, frame, names=True, dendrograms=True, row_colors=known),
        plot_block_means(model),
        plot_dots(model, frame),
        plot_dots(model, frame, names=False),
    ]
    figures += [plot_confidence(model)[0], plot_merge_costs(model)[0]]
    # Axes that are given may have little room.
    given = new_figure(size=(9, 8))[1]
    figures += [plot_blocks(model, frame, names=True, dendrograms=True, ax=given)]
    figures += [plot_block_means(model, new_figure()[1])]
    figures += [plot_blocks(model, frame, ax=new_figure()[1])]
    for number, ax in enumerate(figures):
        assert not clashes(ax.figure), number


def test_clusters_stand_in_the_order_of_the_tree(zoo):
    frame, _, model = zoo
    ax = plot_blocks(model, frame, dendrograms=True)
    assert drawn(ax).shape == frame.shape
    n_merges = {model.n_row_clusters_ - 1, model.n_column_clusters_ - 1}
    trees = [panel for panel in ax.child_axes if panel.lines]
    assert {len(panel.lines) for panel in trees} == n_merges
    # Branches do not cross: what a merge joins stands side by side.
    for merges, labels in ((merge_tree(model, 0), model.row_labels_),
                           (merge_tree(model, 1), model.column_labels_)):  # fmt: skip
        order = leaf_order(merges, labels.max() + 1).tolist()
        members = {k: {k} for k in order}
        for merge in merges:
            members[merge.first] |= members.pop(merge.second)
            places = sorted(map(order.index, members[merge.first]))
            assert places[-1] - places[0] == len(places) - 1
    with pytest.raises(ValueError, match="has no hierarchy"):
        plot_blocks(CCOT(2, 2, random_state=0).fit(frame), frame, dendrograms=True)


def test_names_of_rows_columns_and_clusters_are_written(zoo):
    frame, _, model = zoo
    texts = {text for text, _ in written(plot_blocks(model, frame, names=True).figure)}
    assert {"honeybee", "feathers", "milk, hair (39)"} <= texts


def test_colours_have_a_legend(zoo):
    frame, classes, model = zoo
    known = pd.DataFrame({"class": classes, "size": np.arange(101.0)}, index=frame.index)
    figure = plot_blocks(model, frame, row_colors=known, column_colors=["#ff0000"] * 16).figure
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["class", *sorted(set(classes)), "size", "0", "100"]
    gaps = [None, *classes[1:]]
    assert plot_blocks(model, frame, row_colors=gaps).figure.legends
    with pytest.raises(ValueError, match="3 row_colors 'class' for 101 rows"):
        plot_blocks(model, frame, row_colors={"class": classes[:3]})


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame])
def test_colours_come_in_mappings_and_in_frames_of_any_library(make):
    given = {"a": [1, 2], "b": ["x", "y"]}
    assert as_tracks(make(given), 2, "row") == given
    assert as_tracks(pd.Series([1, 2], name="a"), 2, "row") == {"a": [1, 2]}
    assert as_tracks(["x", "y"], 2, "row") == {"": ["x", "y"]}


def test_unlike_columns_are_shown_in_standard_deviations(zoo):
    frame, _, model = zoo
    image = drawn(plot_blocks(model, frame))
    np.testing.assert_allclose(image.mean(axis=0), 0, atol=1e-12)
    assert drawn(plot_blocks(model, frame, scale="none")).max() == 5  # levels of legs
    with pytest.raises(ValueError, match="scale='rows' must be"):
        plot_blocks(model, frame, scale="rows")


def test_dots_show_means_and_shares(zoo):
    frame, _, model = zoo
    ax = plot_dots(model, frame, n_columns=2)
    ax.figure.canvas.draw()
    titles = [label.get_text() for label in ax.get_xticklabels()]
    dots = ax.collections[0]
    mammals = model.row_labels_[list(frame.index).index("bear")]
    here = np.all(dots.get_offsets() == (titles.index("milk"), mammals), axis=1).nonzero()[0][0]
    milk = frame["milk"]
    expected = (milk[model.row_labels_ == mammals].mean() - milk.mean()) / milk.std(ddof=0)
    assert dots.get_array()[here] == pytest.approx(expected)
    assert dots.get_sizes()[here] == dots.get_sizes().max()
    legend = [text.get_text() for text in ax.figure.legends[0].get_texts()]
    assert legend == ["10%", "50%", "100%"]
    with pytest.raises(ValueError, match="X has 5 rows"):
        plot_dots(model, frame[:5])


def test_dots_of_counts_and_of_estimators_with_steps(model, blocks):
    assert plot_dots(model, blocks.data).get_title() == "what distinguishes 2 clusters"
    assert len(plot_dots(model, sp.csr_array(blocks.data)).collections[0].get_sizes())


def test_dots_of_dates_are_large_where_all_members_are_early():
    days = np.repeat(["2001-01-01", "2021-01-01"], 30)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"day": pd.to_datetime(days), "place": np.repeat(["x", "y"], 30)})
    frame["size"] = rng.normal(size=60) + np.repeat([0.0, 9.0], 30)
    model = TransportCoclustering(2, 2, random_state=0).fit(frame)
    ax = plot_dots(model, frame, ax=new_figure()[1])
    titles = [tick.get_text() for tick in ax.get_xticklabels()]
    dots = ax.collections[0].get_sizes().reshape(2, -1)
    assert dots[:, titles.index("day")] == pytest.approx(dots.max())


def test_masked_and_strange_matrices_are_drawn_as_they_were_fitted():
    rng = np.random.default_rng(0)
    matrix = np.kron([[1.0, 5.0], [6.0, 1.0]], np.ones((20, 10))) + rng.normal(size=(40, 20))
    mask = rng.random(matrix.shape) < 0.2
    masked = np.ma.masked_array(np.where(mask, 1e6, matrix), mask)
    model = TransportCoclustering(random_state=0).fit(masked)
    assert plot_blocks(model, masked).images[0].get_clim()[1] < 20
    plain = TransportCoclustering(random_state=0).fit(matrix)
    expected = drawn(plot_blocks(plain, matrix))
    for given in (matrix.astype(object), matrix.tolist(), sp.bsr_array(matrix)):
        np.testing.assert_array_equal(drawn(plot_blocks(plain, given)), expected)
        plot_dots(plain, given)
    with pytest.raises(ValueError, match="fitted matrix had"):
        plot_dots(plain, matrix[:, :5])


def test_baselines_have_no_confidence_to_show(blocks):
    baseline = DoubleKMeans(2, 2, n_init=1, random_state=0).fit(blocks.data)
    with pytest.raises(ValueError, match="DoubleKMeans has no confidence"):
        plot_confidence(baseline)
