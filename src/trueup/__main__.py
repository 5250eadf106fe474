"""`python -m trueup` is the `trueup` command."""

from trueup.main import main

if __name__ == "__main__":
    main()
