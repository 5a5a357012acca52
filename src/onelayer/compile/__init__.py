"""Compilers: a problem in, a model out."""
