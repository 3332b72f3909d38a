"""Fitted models and finished parts of fits in files, written completely or not at all."""
