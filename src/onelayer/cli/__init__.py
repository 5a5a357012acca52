"""The command line: `onelayer memorize | predict | inspect | plan | theorem | demo`."""

from onelayer.cli.app import main

__all__ = ["main"]
