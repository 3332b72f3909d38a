"""Benchmarks: each module measures one claim and stores what it saw as JSON."""
