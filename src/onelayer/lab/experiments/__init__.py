"""One question, one module; `onelayer.lab.experiment` says what a module has."""
