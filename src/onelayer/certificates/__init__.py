"""From a model and its data to a certificate. Free to be clever or wrong: only the checker is trusted."""
