"""How one attention layer tells contexts apart."""
