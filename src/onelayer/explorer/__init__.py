"""A model as one page to look at: its forward pass in the browser, with the bits of `predict(path="reference")`."""
