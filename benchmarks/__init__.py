"""Measurements side by side with a floor or a peer, in one run: `make bench`."""
