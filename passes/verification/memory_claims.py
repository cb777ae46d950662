"""Check what `plan-memory` claims: each function's plan is run on tags, and sizes are compared."""

import itertools
from collections.abc import Iterable, Sequence
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.remarks import Remark
from braid.analysis.storage.tensor_storage import storage_bytes
from braid.dialects.braid.attribute_names import (
    ARENA_BYTES,
    ARENAS,
    BUFFERS,
    STORED_BUFFER,
    STORED_TYPE,
)
from braid.dialects.braid.attributes import layout_of
from braid.dialects.braid.base import AnyTensor
from braid.dialects.braid.buffer import BufferAttr
from braid.dialects.braid.constants import ConstantOp, ParameterOp
from braid.dialects.braid.sizes import is_open
from braid.dialects.braid.variants import program_functions
from braid.passes.infrastructure.decision_checks import WrongClaimError
from braid.passes.verification.claims import (
    claims_about,
    name_of,
    number,
    require_at_most,
)
from braid.passes.verification.tagged_run import TaggedRun


def check_plan(
    context: Context, pass_: ModulePass, module: ModuleOp, remarks: Sequence[Remark]
) -> None:
    """Raise WrongClaimError for a plan that loses data, and for sizes that are not its own."""
    for function in program_functions(module):
        if is_open(function):  # its buffers are placed when sizes are known
            _check_weights(function)
            continue
        sizes = arena_sizes(function)
        run = TaggedRun(function, sizes)
        run.run()
        for memory, size in sizes.items():
            if run.used[memory] != size:
                raise WrongClaimError(
                    f"{name_of(function)}: {memory} of {size} bytes claimed, "
                    f"{run.used[memory]} used"
                )
        _check_weights(function)
    for remark in claims_about(remarks, pass_, "arena_bytes"):
        assert isinstance(remark.op, FuncOp)
        name = str(remark.data.get("memory"))
        size = arena_sizes(remark.op)[f"arena:{name}" if name else "arena"]
        if number(remark, "arena_bytes") != size:
            raise WrongClaimError(
                f"{name_of(remark.op)}: '{remark.message}' is not the {size} bytes of the plan"
            )
        require_at_most(remark, "lower_bound", size, "the arena")


def arena_sizes(function: FuncOp) -> dict[str, int]:
    """Return the bytes of each arena of `function` by the name of its space, the main one first."""
    sizes = {"arena": cast(IntegerAttr, function.attributes[ARENA_BYTES]).value.data}
    others = function.attributes.get(ARENAS)
    if isinstance(others, DictionaryAttr):
        entries = cast(Iterable[tuple[str, Attribute]], others.data.items())
        sizes |= {f"arena:{k}": v.value.data for k, v in entries if isinstance(v, IntegerAttr)}
    return sizes


def _check_weights(function: FuncOp) -> None:
    """Check that weights of different keys do not overlap, neither stored nor expanded."""
    places: dict[Attribute, list[tuple[str, int, int]]] = {}
    for op in function.walk():
        if not isinstance(op, ConstantOp | ParameterOp):
            continue
        buffer = next(iter(cast(Iterable[Attribute], op.attributes[BUFFERS])))
        assert isinstance(buffer, BufferAttr)
        stored = op.attributes.get(STORED_BUFFER)
        type = cast(AnyTensor, op.output.type)
        ranges = [_range(buffer, storage_bytes(type))]
        if isinstance(stored, BufferAttr):
            element = op.attributes.get(STORED_TYPE) or type.element_type
            narrow = TensorType(element, type.get_shape())
            ranges.append(_range(stored, storage_bytes(narrow, layout_of(type).untransformed)))
        key = op.key if isinstance(op, ParameterOp) else op.value
        spaces = ["weights"] if stored is None else ["expanded", "weights"]
        if [space for space, _, _ in ranges] != spaces or places.setdefault(key, ranges) != ranges:
            raise WrongClaimError(f"{name_of(op)} is at {buffer}, where nothing else of it is")
    ordered = sorted(place for ranges in places.values() for place in ranges)
    for (space, _, end), (other, begin, _) in itertools.pairwise(ordered):
        if space == other and begin < end:
            raise WrongClaimError(f"{name_of(function)}: {space} overlap at byte {begin}")


def _range(buffer: BufferAttr, nbytes: int) -> tuple[str, int, int]:
    begin = buffer.offset.data
    return buffer.space.data, begin, begin + nbytes
