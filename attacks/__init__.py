"""Forged bundles that the checker must refuse, each with a line saying why."""
