"""Log through Python's `logging`, under the name `braid`.

Nothing is shown unless the program sets logging up, as with `logging.basicConfig`. Importing
`logging` takes a while; where nobody has, nobody listens.
"""

import sys

NAME = "braid"
DEBUG, INFO, WARNING, ERROR = 10, 20, 30, 40
"""Levels, as in `logging`."""


def log(level: int, message: str, *arguments: object) -> None:
    """Log a message, formatted with `%` where somebody wants to see it."""
    logging = sys.modules.get("logging")
    if logging is None:
        return
    logger = logging.getLogger(NAME)
    if not any(isinstance(handler, logging.NullHandler) for handler in logger.handlers):
        logger.addHandler(logging.NullHandler())  # else warnings go to standard error
    logger.log(level, message, *arguments)
