import numpy as np
import pytest
from sklearn.cluster import SpectralCoclustering

from ccot import CCOT, TransportCoclustering
from ccot.io import ModelFileError
from ccot.recommend import BlockRecommender, load_recommender
from tests.recommend.test_recommender import make_ratings


@pytest.mark.parametrize(
    ("blocks", "view"),
    [(TransportCoclustering(2, 3, random_state=0), "likes"), (CCOT(), "zeros")],
    ids=["transport", "ccot"],
)
def test_answers_survive_the_file(tmp_path, blocks, view):
    _, ratings, _, _ = make_ratings(noise=0.5)
    names = [f"film {number}" for number in range(45)]
    model = BlockRecommender(blocks, view=view, block_shrinkage=7)
    model.fit(ratings, item_names=names)
    again = load_recommender(model.save(tmp_path / "model.ccot"))
    users, items = np.indices(ratings.shape)
    np.testing.assert_array_equal(again.predict(users, items), model.predict(users, items))
    assert again.recommend(3) == model.recommend(3)
    assert again.explain(3, 4) == model.explain(3, 4)
    one, other = (each.new_user([0, 4, 8], [5, 1, 3]) for each in (model, again))
    assert (one.label, one.offset) == (other.label, other.offset)
    assert again.item_names_ == tuple(names)
    assert again.user_names_ == tuple(map(str, range(60)))
    assert again.save(tmp_path / "again.ccot").read_bytes() == (
        (tmp_path / "model.ccot").read_bytes()
    )


def test_other_files_are_refused(tmp_path):
    _, ratings, _, _ = make_ratings()
    blocks = TransportCoclustering(2, 3, random_state=0).fit(np.nan_to_num(ratings))
    path = blocks.save(tmp_path / "blocks.ccot")
    with pytest.raises(ModelFileError, match="holds no recommender: make one with"):
        load_recommender(path)
    with pytest.raises(ModelFileError, match="no file at"):
        load_recommender(tmp_path / "nowhere.ccot")


def test_damage_is_told(tmp_path):
    _, ratings, _, _ = make_ratings()
    path = BlockRecommender(TransportCoclustering(2, 3)).fit(ratings).save(tmp_path / "a.ccot")
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(ModelFileError):
        load_recommender(path)


def test_foreign_coclusterings_stay_in_memory(tmp_path):
    _, ratings, _, _ = make_ratings()
    blocks = SpectralCoclustering(2, random_state=0).fit(np.nan_to_num(ratings))
    with pytest.raises(ModelFileError, match="SpectralCoclustering"):
        BlockRecommender(blocks, view="zeros").fit(ratings).save(tmp_path / "a.ccot")


def test_names_must_differ():
    _, ratings, _, _ = make_ratings()
    model = BlockRecommender(TransportCoclustering(2, 3))
    with pytest.raises(ValueError, match="two items are named 'a'"):
        model.fit(ratings, item_names=["a"] * 45)
    with pytest.raises(ValueError, match="60 users but 2 names"):
        model.fit(ratings, user_names=["a", "b"])
