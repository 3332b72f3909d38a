"""What is raised about files of models."""


class ModelFileError(ValueError):
    """A model file that cannot be read, or a model that cannot be written."""
