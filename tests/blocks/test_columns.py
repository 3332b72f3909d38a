import numpy as np
import pytest

from ccot.blocks.columns import ColumnKind, read_column, read_levels, recognise
from ccot.io import InputError
from ccot.io.matrix import Table


def words(*cells):
    return np.array(cells, dtype=object)


def kind_of(values, **others):
    return recognise(Table({"x": values, **others}))[0]


RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (RNG.normal(size=30), "number"),
        (RNG.poisson(4, size=300).astype(float), "count"),
        # Whole numbers far from zero are measurements.
        (RNG.poisson(200, size=300).astype(float), "number"),
        (np.array([0.0, 1.0, np.nan, 0.0]), "yes/no"),
        (np.arange(20.0), "identifier"),
        (np.full(5, 3.0), "constant"),
        (np.full(5, np.nan), "constant"),
        (words("12%", "3%", "7%"), "share"),
        (words("$5", "$7.20", "€3"), "money"),
        (words("1,234.5", "3", "9,000"), "number"),
        (words("2020-01-02", "2021-05-06", None), "date"),
        (words("10:20", "11:30", "12:40"), "date"),
        (words("yes", "no", "?"), "yes/no"),
        (words("left", "right", "left"), "yes/no"),
        (words("+", "-", "+"), "yes/no"),
        (words("low", "high", "Medium"), "ordered"),
        (words("none", "mild", "severe"), "ordered"),
        (words("<10", "10-19", "20-29", ">30"), "ordered"),
        (words(*[f"name {i}" for i in range(30)]), "identifier"),
        (words(*[f"it was said that {i} is so" for i in range(30)]), "text"),
        (words(*"abcabca"), "category"),
        (words("NA", "?", None), "constant"),
        # Digits that are names.
        (words("01234", "02139", "94110", "01234"), "category"),
        (words("007", "012", "007", "?"), "yes/no"),
        (words(*[f"{i:05d}" for i in range(30)]), "identifier"),
        (words(*[f"{i % 50:05d}" for i in range(80)]), "identifier"),
        (words(*[f"+1555{i:07d}" for i in range(30)]), "identifier"),
        (words(*[f"41111111111{i:05d}" for i in range(30)]), "identifier"),
        # Series count their rows by dates in even steps; birthdays, whose steps differ, do not.
        (words(*[f"2020-01-{i:02d}" for i in range(1, 25)]), "identifier"),
        (np.arange("2020-01-01", "2020-02-01", dtype="datetime64[D]"), "identifier"),
        (words(*[f"1980-{1 + i * i % 12:02d}-{1 + i:02d}" for i in range(24)]), "date"),
        (np.arange(1900.0, 2020.0, 5), "identifier"),
        (np.arange(1900.0, 2020.0, 5)[RNG.permutation(24)], "number"),
        (RNG.permutation(86) + 1.0, "number"),  # ranks
        (words("Jan 1 2000", "Feb 12 2001", "Jan 1 2000"), "date"),
        # Hundreds of words, or a few in three rows, make no category.
        (words(*[f"w{i % 300}" for i in range(3000)]), "text"),
        # Digits that are numbers, though they begin with zeros.
        (words("007.5", "012", "-3"), "number"),
    ],
)
def test_kinds_are_recognised(values, kind):
    found = kind_of(values)
    assert found.kind == kind
    assert found.reason


MONTHS = np.arange("2020-01", "2022-01", dtype="datetime64[M]").astype("datetime64[us]")
DAYS = np.arange("2020-01-01", "2020-07-01", dtype="datetime64[D]").astype("datetime64[us]")
BIRTHDAYS = DAYS[RNG.choice(len(DAYS), 60, replace=False)]


@pytest.mark.parametrize(
    ("dates", "kind"),
    [
        (MONTHS, "identifier"),
        (DAYS, "identifier"),
        (DAYS[np.is_busday(DAYS.astype("datetime64[D]"))], "identifier"),
        (DAYS[:40].repeat(2), "date"),
        (BIRTHDAYS, "date"),
    ],
)
def test_dates_that_count_the_rows_are_names_in_any_order(dates, kind):
    orders = dates, dates[::-1], np.sort(dates), RNG.permutation(dates)
    assert [kind_of(one).kind for one in orders] == [kind] * 4


def test_codes_are_categories_where_the_other_columns_say_so():
    code = RNG.integers(0, 4, 400).astype(float)
    straight = code + 0.1 * RNG.normal(size=400)
    bent = np.array([0.0, 5.0, -3.0, 2.0])[code.astype(int)] + 0.1 * RNG.normal(size=400)
    assert kind_of(code, y=straight, z=RNG.normal(size=400)).kind == "number"
    found = kind_of(code, y=bent, z=RNG.normal(size=400))
    assert (found.kind, found.levels) == ("category", ("0", "1", "2", "3"))


def test_a_kind_that_is_given_is_taken():
    table = Table(
        {"x": words("1", "2", "3")}, kinds={"x": "ordered"}, levels={"x": ("3", "1", "2")}
    )
    assert recognise(table)[0].levels == ("3", "1", "2")
    assert recognise(table, {"x": "category"})[0].kind == "category"
    assert recognise(table, {"x": "text"})[0].is_used is False


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"x": "words"}, "unknown kind"),
        ({"y": "number"}, "'x'"),
        ({"x": "number"}, "'a' is not a num"),
    ],
)
def test_a_kind_that_cannot_be_is_refused(asked, message):
    with pytest.raises(ValueError, match=message):
        recognise(Table({"x": words("a", "b", "1")}), asked)


def test_levels_are_found_again_however_they_are_written():
    numbers = ColumnKind("x", "category", "", ("1", "2.5"))
    assert read_levels(np.array([1.0, 2.5, np.nan, 7.0]), numbers).tolist() == [0, 1, -1, -2]
    assert read_levels(words("1.0", "2.50", None), numbers).tolist() == [0, 1, -1]
    letters = ColumnKind("x", "category", "", ("a", "b"))
    assert read_levels(words(" a", "b ", "NA", "c"), letters).tolist() == [0, 1, -1, -2]


def test_codes_keep_their_zeros_and_are_found_again_without_them():
    cells = words("01234", "94110", "01234", None)
    kind = kind_of(cells)
    assert (kind.levels, kind.reason) == (("01234", "94110"), "codes: leading zeros")
    assert read_levels(cells, kind).tolist() == [0, 1, 0, -1]
    assert read_levels(np.array([1234.0, 94110.0, np.nan, 7]), kind).tolist() == [0, 1, -1, -2]
    assert recognise(Table({"x": cells}), {"x": "number"})[0].kind == "number"


@pytest.mark.parametrize("name", ["ID", "store_id", "storeID", "AreaKey", "cowcode2", "zip"])
def test_whole_numbers_are_codes_where_the_name_says_so(name):
    codes = np.array([*RNG.integers(100, 999, 60), 500, 500], dtype=float)
    (kind,) = recognise(Table({name: codes}))
    assert (kind.kind, kind.reason) == ("identifier", "codes, by the name of the column")
    (kind,) = recognise(Table({name: np.repeat(codes[:15], 10)}))
    assert kind.kind == "category"
    assert recognise(Table({name: codes}), {name: "number"})[0].kind == "number"
    assert recognise(Table({name: codes + 0.5}))[0].kind == "number"


@pytest.mark.parametrize("name", ["acid", "paid", "humid", "keyboard", "decoded", "valid_days"])
def test_other_names_say_nothing(name):
    (kind,) = recognise(Table({name: RNG.integers(100, 999, 60).astype(float)}))
    assert kind.kind == "number"


def test_few_rows_do_not_make_categories_of_numbers():
    medals = {"gold": [24, 10, 9], "silver": [13, 15, 12], "bronze": [11, 8, 12.0]}
    table = Table({name: np.array(values, dtype=float) for name, values in medals.items()})
    assert {kind.kind for kind in recognise(table)} == {"number"}


def test_a_cell_of_digits_that_no_float_can_hold_is_refused():
    for format in ("plain", "percent"):
        cells = words("1.5", "9" * 400 + "%" * (format == "percent"))
        with pytest.raises(InputError, match="values of column 'x' are infinite or too large"):
            read_column(cells, ColumnKind("x", "number", "", (), format))


def test_dates_are_days_and_ordered_levels_ranks():
    dates = np.array(["1970-01-02", "NaT"], dtype="datetime64[us]")
    np.testing.assert_array_equal(read_column(dates, ColumnKind("x", "date", "")), [1.0, np.nan])
    grade = ColumnKind("x", "ordered", "", ("lo", "mid", "hi"))
    np.testing.assert_array_equal(read_column(words("hi", "?", "lo"), grade), [2.0, np.nan, 0.0])


@pytest.mark.parametrize(
    "scale",
    [("strongly disagree", "disagree", "neither agree nor disagree", "agree", "strongly agree"),
     ("very dissatisfied", "neutral", "satisfied")],
)  # fmt: skip
def test_answers_of_surveys_are_ordered(scale):
    answers = np.array([scale[i % len(scale)].capitalize() for i in range(40)], dtype=object)
    (kind,) = recognise(Table({"answer": answers}))
    assert kind.kind == "ordered"
    assert [level.lower() for level in kind.levels] == list(scale)


@pytest.mark.parametrize(
    ("words", "order"),
    [
        (["May", "January", "December"], ("January", "May", "December")),
        (["Sun", "wed", "MON"], ("MON", "wed", "Sun")),
        (["pear", "apple", "fig"], ("apple", "fig", "pear")),
    ],
)
def test_ordered_words_follow_the_calendar_or_the_alphabet_and_say_so(words, order):
    (found,) = recognise(Table({"a": np.array(words, dtype=object)}), {"a": "ordered"})
    assert found.levels == order
    assert ("alphabetical order" in found.reason) == ("pear" in words)


def test_numbers_with_a_unit_are_numbers_and_two_of_them_words():
    weights = np.array([f"{50 + i / 2} kg" for i in range(40)], dtype=object)
    drives = np.array(["2wd", "4wd"] * 20, dtype=object)
    weight, drive = recognise(Table({"weight": weights, "drive": drives}))
    assert (weight.kind, weight.reason) == ("number", "numbers, with the unit kg")
    assert read_column(weights, weight).tolist() == [50 + i / 2 for i in range(40)]
    assert (drive.kind, drive.levels) == ("yes/no", ("2wd", "4wd"))


def test_levels_in_brackets_stay_what_they_are():
    cells = np.array(["(1)", "(2)", "(3)"] * 9, dtype=object)
    (kind,) = recognise(Table({"note": cells}), {"note": "category"})
    assert read_levels(cells, kind).tolist() == [0, 1, 2] * 9
