"""The benchmark suite: cases, rivals, and one run that measures them all in turns."""
