"""Profile keys for control flow of models whose format has none: what readers do once."""

from collections import Counter
from collections.abc import Iterator

from xdsl.dialects import func, scf, tensor
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Operation, Region

from braid.dialects.braid.attribute_names import PROFILE_KEYS
from braid.dialects.braid.names import names_of


def write_profile_keys(module: ModuleOp) -> None:
    """Write `braid.profile_keys` on all control flow of `module` that has none.

    The first named op of a branch, and the one that makes the condition, tell about it, where no
    other op has their names. What has no such op gets a name of its own, by the function and the
    place in it (`main/if0/then`), under which braid's own profile counts its regions. So do
    loops: ops in their bodies are found by name (see `annotate-profile`).
    """
    known = Counter(name for op in module.walk() for name in names_of(op))
    for function in module.ops:
        if not isinstance(function, func.FuncOp):
            continue
        places: Counter[str] = Counter()
        for op in function.walk():
            kind = _KINDS.get(type(op))
            if kind is None:
                continue
            path = f"{function.sym_name.data}/{kind}{places[kind]}"
            places[kind] += 1
            if PROFILE_KEYS not in op.attributes:
                keys = {key: StringAttr(name) for key, name in _keys(op, path, known)}
                op.attributes[PROFILE_KEYS] = DictionaryAttr(keys)


_KINDS: dict[type[Operation], str] = {
    scf.IfOp: "if",
    scf.IndexSwitchOp: "switch",
    scf.ForOp: "for",
    scf.WhileOp: "while",
}


def _keys(op: Operation, path: str, known: Counter[str]) -> Iterator[tuple[str, str]]:
    if not isinstance(op, scf.IfOp | scf.IndexSwitchOp):
        yield from ((key, f"{path}/{key}") for key in ("enter", "next"))
        return
    condition = _maker(op)
    if condition is not None:
        yield from (("condition", name) for name in _unique(condition, known)[:1])
    for key, region in _branches(op).items():
        ops = region.block.ops if region.blocks else ()
        names = (name for inner in ops for name in _unique(inner, known))
        yield key, next(names, f"{path}/{key}")


def _branches(op: scf.IfOp | scf.IndexSwitchOp) -> dict[str, Region]:
    if isinstance(op, scf.IfOp):
        return {"then": op.true_region, "else": op.false_region}
    cases = {str(number): region for number, region in enumerate(op.case_regions)}
    return {**cases, "default": op.default_region}


def _maker(op: scf.IfOp | scf.IndexSwitchOp) -> Operation | None:
    """What computes the condition, in the block of `op`."""
    owner = (op.cond if isinstance(op, scf.IfOp) else op.arg).owner
    if isinstance(owner, tensor.ExtractOp):
        owner = owner.tensor.owner
    return owner if isinstance(owner, Operation) and owner.parent is op.parent else None


def _unique(op: Operation, known: Counter[str]) -> list[str]:
    return [name for name in names_of(op) if known[name] == 1]
