"""How the stack says no."""


class Failure(Exception):
    """Something the user has to know or put right; its text is printed as it is, and the exit code is 1."""
