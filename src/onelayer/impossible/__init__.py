"""What one layer cannot do, whatever its weights: each statement with a pair of inputs that shows it."""
