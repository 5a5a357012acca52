"""Learning algorithms as weights: one statement, one module. Each gives a network and the algorithm that it is."""
