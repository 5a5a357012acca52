"""`python -m onelayer`: the command line."""

from onelayer.cli import main

if __name__ == "__main__":
    main()
