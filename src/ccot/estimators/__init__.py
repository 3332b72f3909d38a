"""scikit-learn faces of the algorithms: they validate, call the pipeline and show the answer."""
