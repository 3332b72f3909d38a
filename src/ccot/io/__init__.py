"""Matrices from files, models in files."""

from ccot.io.matrix import InputError, NamedMatrix
from ccot.io.read import read_matrix
from ccot.persistence.model_file import ModelFileError

__all__ = ["InputError", "ModelFileError", "NamedMatrix", "read_matrix"]
