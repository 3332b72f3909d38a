"""Matrices and tables from files, models in files."""

from ccot.io.matrix import InputError, NamedMatrix, Table
from ccot.io.read import read_matrix, read_table
from ccot.persistence.registry import ModelFileError

__all__ = ["InputError", "ModelFileError", "NamedMatrix", "Table", "read_matrix", "read_table"]
