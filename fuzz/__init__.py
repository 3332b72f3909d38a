"""Hostile files: every reader of the library against mutated ones, watched for what it may not do.

``python -m fuzz.campaign --seconds 600`` runs all targets and writes what was seen as JSON;
``python -m fuzz.run npz --seconds 60`` runs one. Both need atheris (``pip install atheris``).
"""
