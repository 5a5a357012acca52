"""Small networks with a name and a law."""
