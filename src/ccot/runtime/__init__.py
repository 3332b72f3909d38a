"""Array backends, progress, random numbers: what every layer may use."""
