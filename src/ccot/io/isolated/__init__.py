"""Files that can crash the library that reads them are read by another process, within limits.

:mod:`~ccot.io.isolated.client` is imported by this package. It starts
:mod:`~ccot.io.isolated.worker`, which imports one of the readers beside it: h5ad, market, parquet
or zarr. Questions and answers are lines of JSON; arrays follow as plain bytes.
"""
