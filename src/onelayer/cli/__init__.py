"""The command line: `onelayer memorize | approximate | predict | inspect | verify | explain | plan | ...`."""

from __future__ import annotations

import sys
from io import TextIOWrapper


def main() -> None:
    """Run the command line. Importing it takes a moment, in which a person may already press Ctrl-C."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a name that the terminal cannot show must not end the program
            stream.reconfigure(errors="backslashreplace")
    try:
        from onelayer.cli.app import run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; nothing was written\n")
        sys.exit(130)  # as in exit_codes, which may not have been imported yet
