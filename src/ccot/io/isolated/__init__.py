"""Files that can crash the library that reads them are read by another process, within limits.

The client starts the worker, which imports one of the readers beside it. Questions and answers are
lines of JSON; arrays follow as plain bytes.
"""
