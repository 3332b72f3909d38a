"""Matrices from files, models in files."""

from ccot.io.model_file import ModelFileError

__all__ = ["ModelFileError"]
