"""From context coordinates to answers: stacks of linear maps with ReLU."""
