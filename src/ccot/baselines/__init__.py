"""The methods that the paper compares with, as estimators."""

from ccot.baselines.double_kmeans import DoubleKMeans
from ccot.baselines.information_theoretic import InformationTheoreticCoclustering
from ccot.baselines.latent_block import GaussianLatentBlockModel
from ccot.baselines.residual_bayesian import ResidualBayesianCoclustering
from ccot.baselines.tri_nmf import TriNMF
from ccot.baselines.two_sided import TwoSidedKMeans, TwoSidedNMF

__all__ = [
    "DoubleKMeans",
    "GaussianLatentBlockModel",
    "InformationTheoreticCoclustering",
    "ResidualBayesianCoclustering",
    "TriNMF",
    "TwoSidedKMeans",
    "TwoSidedNMF",
]
