"""Cards of clusters that were found, beside what people who know the data say of them.

Every trait of every card is computed again from the table, and every table has sentences that a
reader would expect to read: a class, and what is said of a cluster in which it prevails.
"""

import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from ccot import TransportCoclustering
from ccot.datasets import load_titles, load_votes, load_zoo

SENTENCES = {
    # Barolo is strong and full of flavanoids, Grignolino light, Barbera poor in flavanoids.
    "wine": [("0", {"high proline", "high flavanoids", "high alcohol"}),
             ("1", {"low alcohol", "low color_intensity"}),
             ("2", {"low flavanoids", "low hue"})],
    # Gentoos live on Biscoe, are heavy, have long flippers and shallow bills.
    "penguins": [("Gentoo", {"island = Biscoe", "high flipper_length_mm", "low bill_depth_mm",
                             "high body_mass_g"}),
                 ("Adelie", {"low flipper_length_mm", "low body_mass_g"})],
    # Rosa has the largest kernels, Canadian the smallest and narrowest.
    "seeds": [("2", {"high area", "high perimeter", "high kernel_length"}),
              ("3", {"low area", "low kernel_width"})],
    # Thyroxin is high if the gland works too much, TSH if it works too little.
    "thyroid": [("2", {"high thyroxin"}), ("3", {"high tsh", "low thyroxin"})],
    # Phytophthora stunts the plants; brown stem rot discolours the stem from within.
    "soybean": [("phytophthora-rot", {"plant.growth"}),
                ("brown-stem-rot", {"more int.discolor = 1"})],
    # The sky is bright (v10), grass is low in the picture (v2) and green (v16).
    "statlog": [("2", {"high v10"}), ("7", {"high v16", "high v2"})],
    # The menopause comes with age; affected nodes go with caps that were broken.
    "breast_categories": [(None, {"menopause = ge40", "high age"}),
                          (None, {"menopause = premeno", "low age"}),
                          ("recurrence-events", {"high inv_nodes", "more node_caps"})],
    # Heavy cars are powerful and driven by their rear wheels.
    "imports": [("rwd", {"high weight", "high hp", "high length"}), ("fwd", {"low weight"})],
    # Headlamps contain barium and aluminium instead of magnesium.
    "glass": [("7", {"high Ba", "high Al", "low Mg"})],
    # Slow refill of capillaries and thick blood are signs of a case for surgery.
    "horse_colic": [("1", {"high capillary", "high pcv"}), ("2", {"low pain"})],
    # Large loans are long; who lives for free (A153) owns no property (A124).
    "german_credit": [(None, {"high amount", "high months"}),
                      (None, {"housing = A153", "property = A124"})],
    "zoo": [("mammal", {"milk", "hair", "no eggs"}), ("bird", {"feathers", "legs = 2"}),
            ("fish", {"fins", "aquatic", "legs = 0"}), ("insect", {"no backbone"})],
    "votes": [("republican", {"el salvador aid", "more physician fee freeze"}),
              ("democrat", {"no physician fee freeze", "aid to nicaraguan contras"})],
    "titles": [("transport", {"more transport", "more optimal"}),
               ("networks", {"more community", "more network"}), ("topics", {"more topic"}),
               ("co-clustering", {"more biclustering", "more gene"}),
               ("recommendation", {"more collaborative", "more filtering"})],
}  # fmt: skip
# Where neighbouring numbers are as good, rounding decides between them: these are given.
NUMBERS = {"zoo": 6, "titles": 5, "votes": 2}
SHIPPED = {
    "zoo": (load_zoo, "class"), "votes": (load_votes, "party"), "titles": (load_titles, "field")
}  # fmt: skip


def read(name, request):
    """A table and the classes of its rows."""
    if name in SHIPPED:
        load, known = SHIPPED[name]
        data = load()
        frame = pd.DataFrame(data.data, index=data.row_names, columns=data.column_names)
        return frame, data.annotations[known]
    path = request.getfixturevalue("data_home") / "tables" / f"{name}.csv"
    frame = pd.read_csv(path, na_values=["?"])
    return frame, pd.read_csv(path.with_suffix(".labels.csv")).label.astype(str).tolist()


def values_of(trait, frame):
    """The column of a trait as numbers: of a category, whether a row has the level."""
    column = frame[trait.name]
    if trait.level is not None:
        as_text = column.map(lambda cell: f"{cell:.12g}" if isinstance(cell, float) else str(cell))
        return (as_text == trait.level).astype(float).where(column.notna())
    if column.dtype == object and set(column.dropna()) <= {"yes", "no"}:
        return (column == "yes").astype(float).where(column.notna())
    return column if column.dtype != object else None


@pytest.mark.parametrize("name", SENTENCES)
def test_cards_are_true_and_say_what_is_known(name, request):
    frame, classes = read(name, request)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = TransportCoclustering(NUMBERS.get(name), random_state=0).fit(frame)
    rows, columns = model._portraits()
    for k, portrait in enumerate(rows):
        assert portrait.traits, portrait.name
        for trait in portrait.traits:
            values = values_of(trait, frame)
            if values is not None:
                inside = values[model.row_labels_ == k].mean()
                assert trait.value == pytest.approx(inside)
                assert np.sign(trait.effect) == np.sign(inside - values.mean())
    for k, portrait in enumerate(columns):
        members = frame.columns[model.column_labels_ == k]
        assert set(portrait.members) <= set(members)
        assert portrait.size == len(members)
        assert portrait.sentence != "close to the average in every column"
    assert len({portrait.name for portrait in (*rows, *columns)}) == len(rows) + len(columns)
    for known, said in SENTENCES[name]:
        cards = [
            {trait.phrase for trait in portrait.traits}
            for k, portrait in enumerate(rows)
            if known is None or known in prevailing(classes, model.row_labels_ == k)
        ]
        assert any(said <= card for card in cards), (said, cards)


def prevailing(classes, members):
    """The class of most members, and every class that is there more often than elsewhere."""
    here = Counter(np.array(classes)[members])
    shares = {one: n / classes.count(one) for one, n in here.items()}
    return {here.most_common(1)[0][0], max(shares, key=shares.__getitem__)}


def test_sentences_are_written_down_for_every_table(data_home):
    tables = {path.name.removesuffix(".labels.csv") for path in
              (data_home / "tables").glob("*.labels.csv")}  # fmt: skip
    assert tables | set(SHIPPED) == set(SENTENCES)
