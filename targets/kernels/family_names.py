"""Kernel families that have been renamed.

Records, `braid.schedule` and files of schedule spaces may have the former names.
"""

_NEW_NAMES = {"conv-narrow": "conv-low-precision", "gemm-narrow": "gemm-low-precision"}
_FORMER_NAMES = {new: former for former, new in _NEW_NAMES.items()}


def current_name(family: str) -> str:
    """Return the name that the family has now, given this or a former one."""
    return _NEW_NAMES.get(family, family)


def name_in_keys(family: str) -> str:
    """Return the name that stands in digests, which must not change with the family's."""
    return _FORMER_NAMES.get(family, family)
