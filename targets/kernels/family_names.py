"""Kernel families that have been renamed.

Records, `braid.schedule` and files of schedule spaces may have the former names.
"""

from collections.abc import Mapping

_NEW_NAMES = {"conv-narrow": "conv-low-precision", "gemm-narrow": "gemm-low-precision"}

NAMES_IN_KEYS: Mapping[str, str] = {new: former for former, new in _NEW_NAMES.items()}
"""The names that renamed families have in digests, which must not change with a family's name."""


def current_name(family: str) -> str:
    """Return the name that the family has now, given this or a former one."""
    return _NEW_NAMES.get(family, family)
