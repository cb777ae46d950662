"""From the stable names of ops to those of the model: an importer names parts `NODE/part`."""

from collections.abc import Collection, Iterable, Sequence

_MOST = 5
"""Ops that are named one by one."""


def model_op(name: str, known: Collection[str]) -> str:
    """Return the op of the model that `name` is a part of, by the names of all ops as read."""
    while (head := name.rpartition("/")[0]) and head in known:
        name = head
    return name


def model_ops(names: Iterable[str], known: Collection[str]) -> tuple[str, ...]:
    """Return the ops of the model behind stable names, each once, in order."""
    return tuple(dict.fromkeys(model_op(name, known) for name in names))


def nearest(name: str, known: Collection[str]) -> str:
    """Return the op as read that `name` is, or that a pass made it of; `name` itself for none."""
    found = name
    while found and found not in known:
        found = found.rpartition("/")[0]
    return found or name


def joined(names: Sequence[str]) -> str:
    """Return the names of ops in one line: their common module path is written once, at the front.

    Of many, the first and the last.
    """
    if len(names) < 2:
        return "".join(names)
    if len(names) > _MOST:
        return f"{names[0]} … {names[-1]} ({len(names)} ops)"
    parts = [name.split("/") for name in names]
    common = 0
    while all(len(each) > common + 1 and each[common] == parts[0][common] for each in parts):
        common += 1
    inner = " + ".join("/".join(each[common:]) for each in parts)
    module = "/".join(parts[0][:common])
    return f"{module}: {inner}" if module else " + ".join(names)


def joined_label(label: str) -> str:
    """Return a label of ops, `a/conv, a, b`, in one line as `joined` does, without their parts."""
    names = label.split(", ")
    return joined(model_ops(names, set(names)))
