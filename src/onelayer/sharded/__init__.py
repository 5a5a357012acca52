"""Models in shards: data that no memory holds, built and checked piece by piece, by processes or by a cluster."""
