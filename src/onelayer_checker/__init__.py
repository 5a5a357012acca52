"""A small checker of certificates about one-layer Transformers. It imports nothing of the library."""
