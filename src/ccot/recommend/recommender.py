"""BlockRecommender: ratings from the blocks of a co-clustering."""

import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ccot.estimators.transport import TransportCoclustering
from ccot.persistence.pickles import VersionedPickle
from ccot.recommend import ratings as arithmetic
from ccot.recommend.names import as_names
from ccot.recommend.ratings import VIEWS, RatingSide, Sides, place_by_loss, see
from ccot.recommend.values import UNASSIGNED, Explanation, Item, Neighbour, Recommendation, User
from ccot.runtime.run import Progress, RandomState
from ccot.runtime.types import Matrix, is_sparse

# More starts than the co-clustering takes by itself: groups change less from fit to fit.
_N_INIT = 30
_POSITIVE = [Interval(Real, 0, None, closed="left")]


@dataclass(eq=False, repr=False)
class BlockRecommender(VersionedPickle, BaseEstimator):
    r"""Predicted ratings and recommendations from the blocks of a co-clustering.

    The rating of a user u for an item i is

    .. math:: \mu + b_u + c_i + e_{z(u) w(i)},

    the mean of all ratings, the offsets of user and item (regularised least squares), and the mean
    residual of the block of their clusters, shrunk towards 0. Without shrinkage this is the model
    of [1]_. The items that most of the user's group liked are recommended.

    Parameters
    ----------
    coclustering : estimator or None, default=None
        Fitted or not; None: :class:`~ccot.TransportCoclustering` with 30 starts.
    view : {"zeros", "likes", "nan"}, default="zeros"
        Input of the co-clustering: ratings, with 0 for missing ones (as in the paper); 1 for liked
        items and 0 elsewhere; or ratings, with NaN for missing ones. Zeros are best for users with
        few ratings; likes predict a little better.
    like : float or None, default=None
        Smallest rating that means that the item was liked; None: the median.
    user_shrinkage, item_shrinkage : float, default=5, 3
        Offsets are sums divided by the number of ratings plus this.
    block_shrinkage, liking_shrinkage : float, default=30, 10
        The same for effects of blocks, and for the share of a group who liked an item, which is
        shrunk towards that of all users.
    random_state, verbose
        Of the co-clustering, if none is given.

    Attributes
    ----------
    coclustering_ : estimator
        The fitted one.
    user_labels_, item_labels_ : ndarray of int
        Clusters; -1 for users and items without ratings in this view.
    block_means_ : ndarray of shape (n_user_clusters, n_item_clusters)
        Mean rating of each block; NaN where there is none.
    mean_, user_offsets_, item_offsets_ : float, ndarray, ndarray
        Mean of all ratings, and the offsets of users and items.
    like_ : float
        Smallest rating that means liking.
    rating_range_ : tuple of float
        Smallest and largest rating.
    ratings_, user_names_, item_names_ : csr_array, tuple of str, tuple of str
        The ratings, and the names of rows and columns.
    user_ids_, item_ids_ : tuple of str
        Identifiers of rows and columns; by default their names.

    References
    ----------
    .. [1] George and Merugu (2005). A scalable collaborative filtering framework based on
       co-clustering. ICDM.

    Examples
    --------
    >>> import numpy as np
    >>> from ccot.recommend import BlockRecommender
    >>> rng = np.random.default_rng(0)
    >>> taste = np.array([[5, 2], [2, 5]])[np.arange(60) % 2][:, np.arange(40) % 2]
    >>> ratings = np.where(rng.random(taste.shape) < 0.4, taste, np.nan)
    >>> model = BlockRecommender(random_state=0).fit(ratings)
    >>> float(model.predict(0, 2).round(1)), float(model.predict(0, 3).round(1))
    (4.3, 2.0)
    >>> visitor = model.new_user(items=[1, 3, 4], ratings=[5, 5, 2])
    >>> [best.item % 2 for best in model.recommend(visitor, 3)]
    [1, 1, 1]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "coclustering": [HasMethods(["fit"]), None],
        "view": [StrOptions(set(VIEWS))],
        "like": [Real, None],
        **{f"{of}_shrinkage": _POSITIVE for of in ("user", "item", "block", "liking")},
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose", callable],
    }

    coclustering: Any = None
    _: KW_ONLY
    view: str = "zeros"
    like: float | None = None
    user_shrinkage: float = 5.0
    item_shrinkage: float = 3.0
    block_shrinkage: float = 30.0
    liking_shrinkage: float = 10.0
    random_state: RandomState = None
    verbose: int | Progress = 0

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        user_names: Sequence[Any] | None = None,
        item_names: Sequence[Any] | None = None,
        user_ids: Sequence[Any] | None = None,
        item_ids: Sequence[Any] | None = None,
    ):
        """Learn from ratings.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_users, n_items)
            Ratings. Missing ratings are NaN in an array, and entries not stored in a sparse matrix.
        y : None
            Ignored.
        user_names, item_names : sequence, optional
            Names for the command line and the service; by default their numbers.
        user_ids, item_ids : sequence, optional
            Identifiers, by which they can also be found.

        Returns
        -------
        BlockRecommender
        """
        self._validate_params()
        ratings = arithmetic.as_ratings(X)
        n_users, n_items = ratings.shape
        self.user_names_ = users = as_names(user_names, n_users, "user")
        self.item_names_ = items = as_names(item_names, n_items, "item")
        self.user_ids_ = as_names(users if user_ids is None else user_ids, n_users, "user")
        self.item_ids_ = as_names(items if item_ids is None else item_ids, n_items, "item")
        self.rating_range_ = float(ratings.data.min()), float(ratings.data.max())
        self.like_ = float(np.median(ratings.data)) if self.like is None else float(self.like)
        seen = see(ratings, self.view, self.like_)
        self.coclustering_ = self._cocluster(seen)
        labels = self.coclustering_.row_labels_, self.coclustering_.column_labels_
        self.user_labels_, self.item_labels_ = map(arithmetic.unless_empty, labels, (seen, seen.T))
        offsets = arithmetic.fit_offsets(ratings, self.user_shrinkage, self.item_shrinkage)
        self.mean_, self.user_offsets_, self.item_offsets_ = offsets
        shape = int(labels[0].max()) + 1, int(labels[1].max()) + 1
        self._blocks = arithmetic.sum_blocks(
            ratings, self.mean_, self._sides(0), shape, self.block_shrinkage
        )
        self.ratings_, self._by_item = ratings, sp.csc_array(ratings)
        self._likes = see(ratings, "likes", self.like_)
        groups = self.user_labels_ == np.arange(shape[0])[:, None]
        self._liking = arithmetic.shares_who_liked(self._likes, groups, self.liking_shrinkage)
        return self

    def predict(self, user: Any, item: Any) -> Any:
        """Return predicted ratings.

        Parameters
        ----------
        user, item : int, array of int, User or Item
            Numbers of rows and columns of the fitted matrix, or a new user or item.

        Returns
        -------
        float or ndarray
            Ratings within the range of the fitted ones. Users and items without ratings get means.
        """
        check_is_fitted(self)
        user_label, user_offset = self._place_and_offset(user, 0)
        item_label, item_offset = self._place_and_offset(item, 1)
        effect = self._blocks.effect[user_label, item_label]
        return np.clip(self.mean_ + user_offset + item_offset + effect, *self.rating_range_)

    def recommend(
        self, user: int | User, n: int = 10, *, exclude_seen: bool = True, by: str = "liking"
    ) -> list[Recommendation]:
        """Return the items to recommend to a user, best first.

        Parameters
        ----------
        user : int or User
            Number of a row of the fitted matrix, or a new user.
        n : int, default=10
            How many; fewer are returned if there are fewer items.
        exclude_seen : bool, default=True
            Leave out items that the user has rated.
        by : {"liking", "rating"}, default="liking"
            By the share of the user's group who liked the item, or by predicted rating, which
            favours items with few ratings.

        Returns
        -------
        list of Recommendation
        """
        check_is_fitted(self)
        if by not in ("liking", "rating"):
            raise ValueError(f'by={by!r} is not known: use "liking" or "rating"')
        if not isinstance(n, Integral) or n < 1:
            raise ValueError(f"n={n!r} must be at least 1")
        label, _ = self._place_and_offset(user, 0)
        ratings = self.predict(user, np.arange(self.ratings_.shape[1]))
        liking = self._liking[label]
        score = liking if by == "liking" else ratings
        rated = _rated(user, self.ratings_)[0] if exclude_seen else []
        left = np.delete(np.arange(len(score)), rated)
        # Ties go to the better rated, then to the first.
        best = np.lexsort((-ratings[left], -score[left]))[:n]
        return [
            Recommendation(int(item), float(ratings[item]), float(liking[item]))
            for item in left[best]
        ]

    def explain(self, user: int | User, item: int | Item, *, n_neighbours: int = 5) -> Explanation:
        """Return how a predicted rating is made up.

        Parameters
        ----------
        user, item : int, User or Item
            Numbers of a row and a column of the fitted matrix, or a new user or item.
        n_neighbours : int, default=5
            Maximum number of named members of the user's group who rated the item.

        Returns
        -------
        Explanation
        """
        rating = float(self.predict(user, item))
        user_label, user_offset = self._place_and_offset(user, 0)
        item_label, item_offset = self._place_and_offset(item, 1)
        block = int(user_label), int(item_label)
        return Explanation(
            rating=rating,
            mean=self.mean_,
            user_offset=float(user_offset),
            item_offset=float(item_offset),
            block_effect=float(self._blocks.effect[block]),
            block=block,
            block_mean=float(self._blocks.mean[block]),
            block_size=int(self._blocks.size[block]),
            neighbours=tuple(self._neighbours(user, item, block[0])[:n_neighbours]),
        )

    def new_user(self, items: Any, ratings: Any) -> User:
        """Return a new user with a cluster, without fitting again.

        Parameters
        ----------
        items, ratings : sequences of int and float
            Numbers of the columns of the rated items, and their ratings; may be empty.

        Returns
        -------
        User
            For :meth:`predict`, :meth:`recommend` and :meth:`explain`.
        """
        return User(*self._place_new(items, ratings, 0))

    def new_item(self, users: Any, ratings: Any) -> Item:
        """Return a new item with a cluster, without fitting again.

        Parameters
        ----------
        users, ratings : sequences of int and float
            Numbers of the rows of the users who rated it, and their ratings; may be empty.

        Returns
        -------
        Item
            To be passed to :meth:`predict` and :meth:`explain`.
        """
        return Item(*self._place_new(users, ratings, 1))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the fitted recommender to a file that :func:`load_recommender` reads.

        Parameters
        ----------
        path : path-like
            The file, which will hold the ratings; replaced only by a complete one.

        Returns
        -------
        pathlib.Path
        """
        check_is_fitted(self)
        from ccot.recommend.persist import save_recommender

        return save_recommender(self, path)

    @property
    def block_means_(self) -> np.ndarray:
        """Mean rating of each block; NaN where there is none."""
        check_is_fitted(self)
        return self._blocks.mean[:-1, :-1]

    def _cocluster(self, seen: Matrix) -> Any:
        """Return the co-clustering, fitted if it is not."""
        given, (n_users, n_items) = self.coclustering, seen.shape
        if not hasattr(given, "row_labels_"):
            model = TransportCoclustering(
                n_init=_N_INIT, random_state=self.random_state, verbose=self.verbose
            )
            return (model if given is None else clone(given)).fit(seen)
        shape = len(given.row_labels_), len(given.column_labels_)
        if shape != (n_users, n_items):
            raise ValueError(
                f"the co-clustering was fitted to {shape[0]} x {shape[1]} users and items, but "
                f"there are ratings of {n_users} x {n_items}: fit it to the same ones, or pass it "
                "unfitted"
            )
        return given

    def _sides(self, axis: int) -> Sides:
        """Return what is known of one side, users (0) or items (1), and of the other."""
        users = RatingSide("user", self.user_labels_, self.user_offsets_, self.user_shrinkage)
        items = RatingSide("item", self.item_labels_, self.item_offsets_, self.item_shrinkage)
        return (users, items) if axis == 0 else (items, users)

    def _place_and_offset(self, point: Any, axis: int) -> tuple[Any, Any]:
        """Return label and offset of one side: of old ones by number, of new ones as they come."""
        if isinstance(point, User if axis == 0 else Item):
            return point.label, point.offset
        side, _ = self._sides(axis)
        numbers = side.check_numbers(point)
        return side.labels[numbers], side.offsets[numbers]

    def _place_new(
        self, partners: Any, ratings: Any, axis: int
    ) -> tuple[int, float, np.ndarray, np.ndarray]:
        """Return label and offset of a new user (0) or item (1), and the ratings in order."""
        check_is_fitted(self)
        own, other = self._sides(axis)
        partners, ratings = other.check_ratings(partners, ratings, self.rating_range_)
        effect = self._blocks.effect if axis == 0 else self._blocks.effect.T
        left = ratings - self.mean_ - other.offsets[partners]
        label, model = UNASSIGNED, self.coclustering_
        stored = ratings, partners, np.array([0, len(partners)])
        point = see(sp.csr_array(stored, shape=(1, len(other.labels))), self.view, self.like_)
        if len(partners) and not (is_sparse(point) and point.nnz == 0):
            if hasattr(model, "predict") and hasattr(model, "predict_columns"):
                place = model.predict_columns if axis else model.predict
                label = int(place(point.toarray() if is_sparse(point) else point)[0])
            else:
                label = place_by_loss(left, effect[:-1, other.labels[partners]], own.shrinkage)
        left = left - effect[label, other.labels[partners]]
        return label, float(left.sum() / max(len(left) + own.shrinkage, 1)), partners, ratings

    def _neighbours(self, user: int | User, item: int | Item, label: int) -> list[Neighbour]:
        """Return who of a group rated an item; those who share most likes with the user first."""
        if label == UNASSIGNED:
            return []
        raters, ratings = _rated(item, self._by_item)
        near = self.user_labels_[raters] == label
        if not isinstance(user, User):
            near &= raters != user
        raters, ratings = raters[near], ratings[near]
        rated, given = _rated(user, self.ratings_)
        mine = np.zeros(self.ratings_.shape[1])
        mine[rated[given >= self.like_]] = 1.0
        shared = self._likes[raters] @ mine
        order = np.lexsort((raters, -shared))
        return [Neighbour(int(raters[k]), float(ratings[k]), int(shared[k])) for k in order]


def _rated(point: Any, by_point: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the items that a user rated (users who rated an item), old or new, and the ratings."""
    if isinstance(point, User | Item):
        return point.items if isinstance(point, User) else point.users, point.ratings
    within = slice(by_point.indptr[point], by_point.indptr[point + 1])
    return by_point.indices[within], by_point.data[within]
