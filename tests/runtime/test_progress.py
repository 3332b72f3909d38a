from ccot.runtime.progress import LineProgress, TimeLeft
from ccot.runtime.run import counted


def clock(*seconds):
    return iter(seconds).__next__


def test_the_time_left_is_that_of_the_stage():
    time_left = TimeLeft(clock(0, 5, 100, 105, 110, 110, 130, 130))
    time_left.see("starts", 0, 2)
    time_left.see("starts", 1, 2)
    time_left.see("draws", 40, 100)
    assert str(time_left) == "draws 40 of 100"
    time_left.see("draws", 60, 100)
    assert str(time_left) == "draws 60 of 100, 20 s to go"
    time_left.see("draws", 60, 220)
    assert str(time_left) == "draws 60 of 220, 4 min 0 s to go"


def test_a_stage_that_begins_again_is_timed_again():
    time_left = TimeLeft(clock(0, 10, 20, 30, 30))
    for done in (0, 2, 0, 1):
        time_left.see("starts", done, 2)
    assert str(time_left) == "starts 1 of 2, 10 s to go"


def test_what_takes_longer_than_thought_is_about_to_end():
    time_left = TimeLeft(clock(0, 10, 99))
    time_left.see("", 0, 1)
    time_left.see("", 0.5, 1)
    assert str(time_left) == "50%, 0 s to go"


def test_lines_are_few(capsys):
    now = 0.0
    report = LineProgress("CCOT", lambda: now)
    for now in range(13):
        report("draws", now, 12)
    report("2 x 3 clusters")
    assert capsys.readouterr().out.splitlines() == [
        "[CCOT] draws 5 of 12, 7 s to go",
        "[CCOT] draws 10 of 12, 2 s to go",
        "[CCOT] 2 x 3 clusters",
    ]


def test_items_without_a_length_are_counted_too():
    told = []
    items = counted(iter("abc"), "letters", lambda *news: told.append(news), total=3)
    assert "".join(items) == "abc"
    assert told == [("letters", done, 3) for done in range(4)]
