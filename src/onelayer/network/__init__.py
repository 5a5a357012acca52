"""A one-layer Transformer: its weights, its forward pass, and the same pass with everything kept."""

from onelayer.network.weights import Attention, Embedding, Grouped, Layer, Linear, Transformer

__all__ = ["Attention", "Embedding", "Grouped", "Layer", "Linear", "Transformer"]
