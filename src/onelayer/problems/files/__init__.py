"""One file format, one module; `table.py` is what they read into."""
