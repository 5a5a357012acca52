"""What a command ends with: each exit code has one meaning, for all commands.

0 to 4 are verdicts, as the checker gives them; a command that gives none of its own ends with 0 or 1. Errors begin
at 64, with the codes of sysexits.h, so that no mistake is taken for a verdict.
"""

from __future__ import annotations

from enum import IntEnum

from onelayer.errors import DataError, FileError, MissingExtraError, OptionError


class ExitCode(IntEnum):
    GOOD = 0
    NO = 1
    UNDECIDED = 2
    MALFORMED = 3
    UNFIT = 4
    OPTION = 64
    DATA = 65
    FILE = 66
    EXTRA = 69
    BUG = 70
    MEMORY = 71
    INTERRUPTED = 130
    BROKEN_PIPE = 141


MEANINGS = {
    ExitCode.GOOD: "done; every answer that was asked for is right (VERIFIED)",
    ExitCode.NO: "no: an answer is wrong, a claim refuted (NOT VERIFIED), or no such model exists",
    ExitCode.UNDECIDED: "undecided: the checker could neither prove nor refute it (UNKNOWN)",
    ExitCode.MALFORMED: "the certificate is not one (MALFORMED)",
    ExitCode.UNFIT: "this machine cannot be trusted with a verdict (UNFIT)",
    ExitCode.OPTION: "an option or argument that nothing can meet",
    ExitCode.DATA: "data that cannot be read as it was given",
    ExitCode.FILE: "a file or folder that is missing, in the way, broken or cannot be written",
    ExitCode.EXTRA: "an extra is not installed",
    ExitCode.BUG: "a bug in onelayer",
    ExitCode.MEMORY: "out of memory",
    ExitCode.INTERRUPTED: "interrupted",
    ExitCode.BROKEN_PIPE: "the reader of the output closed the pipe",
}

#: For the end of `onelayer --help`: a paragraph per line.
TABLE = "Exit codes:\n\n" + "\n\n".join(f"{code:d}  {meaning}" for code, meaning in MEANINGS.items())


def of_error(error: Exception) -> ExitCode:
    """What an error that a person can mend ends with; a theorem that does not apply means no."""
    codes = {
        OptionError: ExitCode.OPTION,
        DataError: ExitCode.DATA,
        FileError: ExitCode.FILE,
        OSError: ExitCode.FILE,
        MissingExtraError: ExitCode.EXTRA,
        MemoryError: ExitCode.MEMORY,
    }
    return next((code for kind, code in codes.items() if isinstance(error, kind)), ExitCode.NO)
