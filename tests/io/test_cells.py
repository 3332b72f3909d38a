import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccot.io.cells import FORMATS, find_formats, is_gap, read_numbers


@pytest.mark.parametrize(
    ("cells", "name", "numbers"),
    [
        (["1", "-2.5", "+.5", "1e3"], "plain", [1, -2.5, 0.5, 1000]),
        (["12%", "7.5 %", "-1,5%"], "percent", [0.12, 0.075, -0.015]),
        (["$5", "$1,234.50", "-$3"], "money", [5, 1234.5, -3]),
        (["5 €", "1.234,50 €", "EUR 7"], "money", [5, 1234.5, 7]),
        (["1,234.50", "12", "3,000"], "thousands", [1234.5, 12, 3000]),
        (["1'234", "12 000"], "thousands", [1234, 12000]),
        (["1.234,5", "12,5", "3"], "decimal comma", [1234.5, 12.5, 3]),
        (["0,123"], "decimal comma", [0.123]),
        (["10:30", "6:00:36"], "time", [10.5 / 24, 6.01 / 24]),
        (["1970-01-02", "1970-01-03T12:00:00"], "%Y-%m-%d", [1, 2.5]),
        (["03.01.1970"], "%d.%m.%Y", [2]),
        (["Jan 5, 1970"], "%b %d, %Y", [4]),
        (["5. Jan 1970"], "%d. %b %Y", [4]),
        (["(5.50)", "6", "\u22127"], "plain", [-5.5, 6, -7]),
        (["($1,000)", "$5"], "money", [-1000, 5]),
        (["12 kg", "1,300.5kg", "-3 kg"], "in kg", [12, 1300.5, -3]),
        (["1,5 °C", "3 °C"], "in °C", [1.5, 3]),
    ],
)
def test_numbers_are_read_as_they_are_written(cells, name, numbers):
    assert find_formats(cells)[0] == name
    np.testing.assert_allclose(read_numbers(np.array(cells, dtype=object), name), numbers)


@pytest.mark.parametrize("gap", [None, "", " ", "NA", "n/a", "NaN", "null", "?", "-", "#N/A"])
def test_gaps_are_no_numbers_and_hide_none(gap):
    assert is_gap(gap)
    cells = np.array(["1.5", gap, "2"], dtype=object)
    assert find_formats([cell for cell in cells if cell is not None]) == ["plain", "thousands"]
    np.testing.assert_array_equal(read_numbers(cells, "plain"), [1.5, np.nan, 2])


@pytest.mark.parametrize("cells", [["a"], ["1", "b"], ["1,2,3"], ["12%", "5"], ["20-1-1x"], [""]])
def test_what_is_no_number_has_no_format(cells):
    assert find_formats(cells) == []


def test_dates_that_may_be_read_in_two_ways_say_so():
    assert find_formats(["03/04/2020", "05/06/2020"]) == ["%m/%d/%Y", "%d/%m/%Y"]
    assert find_formats(["03/04/2020", "25/06/2020"]) == ["%d/%m/%Y"]


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_plain_numbers_come_back(number):
    cells = np.array([repr(float(number))], dtype=object)
    assert find_formats(cells.tolist())[0] == "plain"
    assert read_numbers(cells, "plain")[0] == number


@given(st.text(max_size=12), st.sampled_from(list(FORMATS)))
def test_no_cell_breaks_a_format(cell, name):
    value = read_numbers(np.array([cell], dtype=object), name)
    assert value.shape == (1,)


@pytest.mark.parametrize("cells", [["12 kg", "13 lb"], ["1st", "2nd"], ["4 wheels a car", "5"]])
def test_unlike_units_are_words(cells):
    assert find_formats(cells) == []


def test_a_number_in_another_unit_is_a_gap():
    cells = np.array(["12 kg", "12 lb", "12", None], dtype=object)
    np.testing.assert_array_equal(read_numbers(cells, "in kg"), [12, np.nan, np.nan, np.nan])
