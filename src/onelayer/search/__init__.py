"""Choosing contexts and a readout for a problem."""
