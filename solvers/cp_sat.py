"""Find whether OR-Tools' CP-SAT is installed, with which searches prove what bounds leave open."""

from functools import cache
from importlib.util import find_spec


@cache
def has_cp_sat() -> bool:
    """Return whether `ortools` can be imported, without importing CP-SAT, which takes long.

    Searches that only prove or improve a result skip that step without it; searches that are CP-SAT
    models fail to import it.
    """
    try:
        return find_spec("ortools.sat") is not None
    except (ImportError, ValueError):
        return False
