"""How the paper sets up its experiments, sentence by sentence, beside how it is done here."""

import numpy as np
import reproduction
from claims import HEADS, Row
from reproduction import STEPS, verdict
from stored import listed, load
from variants import cells_of

from benchmarks.readings import RANDOM_STARTS
from ccot.experiments.protocol import DATA_SETS, METHODS, RIVALS, base_of
from ccot.experiments.published import TABLE1, TABLE2
from ccot.experiments.sections import make_table1
from ccot.experiments.summary import SIGNIFICANT

USERS, MOVIES, RATINGS, DRAWS = 943, 1682, 100_000, 500


def same(holds: bool, partly: bool = False) -> str:
    """Return the verdict on a setting."""
    return {"holds": "the same", "holds in part": "the same in part"}.get(
        verdict(holds, partly), "different"
    )


def data() -> Row:
    shown = {row[0]: row[1:3] for row in make_table1().rows}
    sizes = all(shown[f"{name}, paper"] == shown[f"{name}, here"] for name in TABLE1)
    return (
        "Matrices follow the Gaussian latent block model, in four scenarios (table 1); figure 1 "
        "shows D2, D3 and D4 in the order of the true partitions",
        "the same model with the parameters that the authors published: sizes and numbers of "
        f"blocks are {'those' if sizes else 'not those'} of table 1, the proportions of D3 are not",
        same(False, sizes),
        "`ccot paper table1`, `ccot paper figure1`",
    )


def baselines() -> Row:
    both = set(TABLE2) == {*RIVALS, *STEPS}
    return (
        "Baselines are ITCC, DKM, ONTMF (Tri-NMF in table 2), GLBM and RBC; K-means and NMF run on "
        "rows and on columns",
        f"{', '.join(RIVALS)}, written here after the papers that introduced them; K-means and "
        "NMF are scikit-learn's. The programs that the paper used are not named",
        same(both),
        "`ccot paper table2`",
    )


def error() -> Row:
    return (
        "The co-clustering error is e + f - e f, with the error rates e of the rows and f of the "
        "columns",
        "the same; an error rate is taken under the best matching of clusters with the true ones",
        "the same",
        "`pytest tests/test_metrics.py`",
    )


def matrices() -> Row:
    protocol, _ = reproduction.chosen()
    return (
        "100 sets of each configuration; mean and standard deviation over all sets",
        f"{protocol.n_trials} matrices of each set and noise; all of them count in the first table "
        "below, those with the right numbers in another",
        same(protocol.n_trials == 100),
        "`ccot paper table2`",
    )


def starts() -> Row:
    protocol, _ = reproduction.chosen()
    alone = {method for *_, method in cells_of(tuple(RANDOM_STARTS))}
    return (
        "50 runs from random initialisations, the best by the method's own criterion is kept; RBC "
        "starts from K-means",
        f"{protocol.n_init} starts, the best by the same criterion. K-means starts from "
        "K-means++, the others in four ways in turn, one of them random and one (also for RBC) "
        f"from K-means. {len(alone)} baselines were also run with random starts only (below)",
        same(False, protocol.n_init == 50),
        "`python -m benchmarks.paper --parts main starts`",
    )


def draws() -> Row:
    protocol, trials = reproduction.chosen()
    used = {t.data_set: t.n_samplings for t in trials if t.method == "CCOT"}
    alone = [name for name in DATA_SETS if used[name] == 1]
    return (
        "CCOT makes 1000 draws, except on D4, which is square; draws are repeated until every row "
        "was in one (section 3.6)",
        f"{protocol.n_samplings} draws, one on {', '.join(alone)}; draws of 300 of 600 and 200 of "
        "300 rows, so that all rows are drawn many times",
        same(protocol.n_samplings == 1000 and alone == ["D4"]),
        "`ccot paper table2`",
    )


def kernels() -> Row:
    return (
        "CCOT-GW has Gaussian kernels whose bandwidth is the mean of all pairwise distances",
        "the same. The paper names neither the loss nor the regularisation of CCOT-GW, nor the "
        "regularisation of CCOT, on these sets: the values in use are stated below every table",
        "the same",
        "`ccot paper table2`",
    )


def numbers() -> Row:
    told = [m for m in METHODS if base_of(m) in RIVALS]
    return (
        "CCOT and CCOT-GW find the numbers of clusters, all others are given the true ones",
        f"{', '.join(told)} are given them, {', '.join(m for m in METHODS if m not in told)} find "
        "them",
        same({*told} == {*RIVALS}),
        "`ccot paper table2`",
    )


def significance() -> Row:
    return (
        "Table 2: a dash if no partition with the requested number is found; bold if Wilcoxon's "
        "test has p below .05",
        "a dash, in the table of trials with the right numbers, if fewer than half of the trials "
        f"have them; the signed-rank test on the same matrices at level {SIGNIFICANT:g}, each "
        "method against the best. The paper does not say which of Wilcoxon's tests, nor which "
        "methods it compares",
        "the same in part",
        "`ccot paper table2`",
    )


def ratings() -> Row:
    main = load("movielens_study")["methods"][0]
    sizes = [main[side]["sizes"] for side in ("users", "movies")]
    shape = tuple(map(sum, sizes))
    rated = round(float((np.outer(*sizes) * load("movielens_settings")["share_rated"]).sum()))
    return (
        "MovieLens-100K: 100,000 ratings from one to five by 943 users of 1682 movies; missing "
        "ratings are 0 and left out of means",
        f"{rated:,} ratings by {shape[0]} users of {shape[1]} movies, missing ratings the same",
        same((*shape, rated) == (USERS, MOVIES, RATINGS)),
        "`ccot paper movielens`",
    )


def ratings_settings() -> Row:
    study = load("movielens_study")
    reg = next(m["reg"] for m in study["methods"] if m["method"] == "CCOT")
    chosen = next(m["reg"] for m in study["methods"] if "cross-validated" in m["method"])
    return (
        "On MovieLens CCOT makes 500 draws, CCOT-GW has the weights (.5, .5), and cross-validation "
        "sets both regularisations; the paper does not say how",
        f"{'32' if study['quick'] else DRAWS} draws, the same weights; our cross-validation gives "
        f"reg {reg:g} to CCOT and {chosen:g} to CCOT-GW, and the study shows reg 1 of the latter",
        same(False, not study["quick"]),
        "`ccot paper movielens`",
    )


def goal() -> Row:
    return (
        "The goal is to recommend movies that users of the same group rated high; further results "
        "are in the supplement",
        "recommendations from blocks are measured on [another page](ratings.md); the paper "
        "measures none. The supplement was not available to us, and nothing of it is compared",
        "not tested",
        "`python -m benchmarks.ratings`",
    )


SETTING = (data, baselines, error, matrices, starts, draws, kernels, numbers, significance, ratings,
           ratings_settings, goal)  # fmt: skip


def setting() -> str:
    return listed(HEADS, [make() for make in SETTING])


TABLES = {"reproduction_setting": setting}
