"""Fitted models and finished parts of fits on disk, whole or not at all."""
