"""Models on disk and in other frameworks."""
