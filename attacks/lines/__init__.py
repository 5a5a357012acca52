"""Every line of the checker deleted or altered, one at a time: a test must notice, or the change is argued away."""
