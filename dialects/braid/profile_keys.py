"""The names under which a profile counts control flow: `braid.profile_keys`.

An `scf.if` has the keys `condition`, `then` and `else`, an `scf.index_switch` `condition`,
`default` and the number of each case, a loop `enter` and `next`; each names an op whose executions
tell about the control flow. Rewriting may remove or merge those ops, so braid's own profile also
counts regions, under names derived from the keys, or from the op's own name if it has no keys.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from xdsl.dialects import func, scf, tensor
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Operation, Region

from braid.dialects.braid.attribute_names import PROFILE_KEYS
from braid.dialects.braid.names import names_of

_SUFFIX = "/region"


def profile_keys(op: Operation) -> Mapping[str, str]:
    """Return the names under which the control flow of `op` is counted, by key."""
    keys = op.attributes.get(PROFILE_KEYS)
    if not isinstance(keys, DictionaryAttr):
        return {}
    return {key: v.data for key, v in keys.data.items() if isinstance(v, StringAttr)}


def region_counter(op: Operation, key: str) -> str | None:
    """Return the counter of entries into the region of `op` that `key` stands for.

    The result is None if `op` has no name.
    """
    name = profile_keys(op).get(key)
    if name is None and (own := names_of(op)):
        name = f"{own[0]}/{key}"
    return None if name is None else name + _SUFFIX


def write_profile_keys(module: ModuleOp) -> None:
    """Write `braid.profile_keys` on all control flow of `module` that has none.

    The first named op of a branch, and the one that makes the condition, tell about it, where no
    other op has their names. Control flow without such an op is named by its function and its
    position there (`main/if0/then`); braid's own profile counts its regions under this name. The
    same holds for loops: ops in their bodies are found by name (see `annotate-profile`).
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
    """Return the op that computes the condition, in the block of `op`."""
    owner = (op.cond if isinstance(op, scf.IfOp) else op.arg).owner
    if isinstance(owner, tensor.ExtractOp):
        owner = owner.tensor.owner
    return owner if isinstance(owner, Operation) and owner.parent is op.parent else None


def _unique(op: Operation, known: Counter[str]) -> list[str]:
    return [name for name in names_of(op) if known[name] == 1]
