"""Files that can crash the library that reads them are read by another process, within limits."""
