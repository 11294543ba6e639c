"""`python -m whencount.cli` is the command `whencount`."""

from whencount.cli import main

main(prog_name="whencount")
