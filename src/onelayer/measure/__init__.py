"""From a model to numbers and figures, for people and for the command line."""
