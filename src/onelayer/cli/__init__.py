"""The command line: `onelayer memorize | approximate | predict | inspect | verify | explain | plan | ...`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line. Importing it takes a moment, in which a person may already press Ctrl-C."""
    try:
        from onelayer.cli.app import run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; nothing was written\n")
        sys.exit(130)
