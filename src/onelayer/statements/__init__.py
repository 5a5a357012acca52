"""Every statement with its source and standing."""

from onelayer.statements.catalogue import CATALOGUE, STANDINGS, Standing, Statement

__all__ = ["CATALOGUE", "STANDINGS", "Standing", "Statement"]
