"""Matrices from files, models in files."""

from ccot.io.matrix import InputError, NamedMatrix
from ccot.io.model_file import ModelFileError
from ccot.io.read import read_matrix

__all__ = ["InputError", "ModelFileError", "NamedMatrix", "read_matrix"]
