"""Sequences and answers as people give them."""
