"""Run the command line: `python -m prudent`."""

from prudent.cli import main

if __name__ == "__main__":
    main()
