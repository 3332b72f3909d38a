import hashlib
import zipfile

import numpy as np
import pytest

from ccot.datasets import fetch_movielens_100k, movielens

FILES = {
    "u.data": "1\t2\t5\t880000000\n2\t1\t3\t880000001\n2\t3\t1\t880000002\n",
    "u.item": "1|Première (1990)|01-Jan-1990||link|0|1\n2|Other (1991)|02-Feb-1991||link|1|0\n"
    "3|unknown||||1|1\n",
    "u.user": "1|24|M|technician|85711\n2|53|F|other|94043\n",
    "u.genre": "unknown|0\nAction|1\n\n",
}


def write_files(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in FILES.items():
        (folder / name).write_bytes(text.encode("latin-1"))


def assert_is_small_set(found):
    np.testing.assert_array_equal(found.data.toarray(), [[0, 5, 0], [3, 0, 1]])
    assert found.data.nnz == 3
    assert found.titles.tolist() == ["Première (1990)", "Other (1991)", "unknown"]
    np.testing.assert_array_equal(found.years, [1990, 1991, np.nan])
    np.testing.assert_array_equal(found.genres, [[False, True], [True, False], [True, True]])
    assert found.genre_names.tolist() == ["unknown", "Action"]
    assert found.ages.tolist() == [24, 53]
    assert found.sexes.tolist() == ["M", "F"]
    assert found.occupations.tolist() == ["technician", "other"]


@pytest.mark.parametrize("below", ["", "ml-100k"])
def test_original_files_are_read(tmp_path, below):
    write_files(tmp_path / below)
    assert_is_small_set(fetch_movielens_100k(tmp_path))


@pytest.mark.parametrize("name", ["u.data", "u.item", "u.user"])
def test_damaged_files_are_refused(tmp_path, name):
    write_files(tmp_path)
    cut = FILES[name].encode("latin-1")[:-14]
    for damaged in (cut, bytes(20), b"something else\n"):
        (tmp_path / name).write_bytes(damaged)
        with pytest.raises(ValueError, match=r"MovieLens-100K .* are damaged .* remove them"):
            fetch_movielens_100k(tmp_path)


def test_environment_names_the_folder(tmp_path, monkeypatch):
    write_files(tmp_path)
    monkeypatch.setenv("CCOT_DATA", str(tmp_path))
    assert_is_small_set(fetch_movielens_100k())


def test_cache_folder_is_the_users(tmp_path, monkeypatch):
    monkeypatch.delenv("CCOT_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    write_files(tmp_path / "ccot" / "ml-100k")
    assert_is_small_set(fetch_movielens_100k())


def test_archive_is_downloaded_once_and_read_unpacked(tmp_path, monkeypatch):
    origin = tmp_path / "origin.zip"
    with zipfile.ZipFile(origin, "w") as archive:
        for name, text in FILES.items():
            archive.writestr(f"ml-100k/{name}", text.encode("latin-1"))
    monkeypatch.setattr(movielens, "_URL", origin.as_uri())
    monkeypatch.setattr(movielens, "_MD5", hashlib.md5(origin.read_bytes()).hexdigest())
    home = tmp_path / "home"
    assert_is_small_set(fetch_movielens_100k(home))
    origin.unlink()
    assert_is_small_set(fetch_movielens_100k(home))
    assert [path.name for path in home.iterdir()] == ["ml-100k.zip"]


def test_the_real_set(data_home):
    if not (data_home / "ml-100k" / "u.data").is_file():
        pytest.skip(f"no ml-100k at {data_home}: the repository does not ship it")
    found = fetch_movielens_100k(data_home)
    assert found.data.shape == (943, 1682)
    assert found.data.nnz == 100_000
    assert set(np.unique(found.data.data)) == {1, 2, 3, 4, 5}
    assert found.titles[49] == "Star Wars (1977)"
    assert found.years[49] == 1977
    assert found.genre_names[found.genres[49]].tolist() == [
        "Action",
        "Adventure",
        "Romance",
        "Sci-Fi",
        "War",
    ]
    assert len(found.ages) == len(found.sexes) == len(found.occupations) == 943
