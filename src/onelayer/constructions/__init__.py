"""From a problem to weights: one statement, one module."""
