"""Elements of `dense_resource<name>` attributes, which a file holds in its last section."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialect_interfaces.op_asm import OpAsmDialectInterface
from xdsl.dialects.builtin import (
    BytesAttr,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    ModuleOp,
    TensorType,
    i1,
)
from xdsl.ir import Attribute, Operation

from braid.analysis.diagnostics.locations import source_location
from braid.dialects.braid.base import AnyTensor
from braid.dialects.braid.dtypes import bytes_of, is_stored_only
from braid.dialects.braid.layout import DYNAMIC
from braid.frontends.mlir.files import MLIRSyntaxError
from braid.support.errors import UnsupportedError

_ALIGNMENT_BYTES = 4
"""The size of the alignment that precedes the elements of a resource."""


def inline_resources(context: Context, module: ModuleOp) -> None:
    """Replace the attributes `dense_resource<name>` of all ops by `dense<…>` ones.

    The resources are those of the text that was parsed in the same `own_resources` block.

    Raises:
        MLIRSyntaxError: the file has no such resource, or its size differs from its type.
        UnsupportedError: the type has a dynamic shape, or elements that braid does not store.

    """
    interface = context.get_dialect("builtin").get_interface(OpAsmDialectInterface)
    known: dict[DenseResourceAttr, Attribute] = {}
    for op in module.walk():
        for table in (op.properties, op.attributes):
            for name, value in table.items():
                if isinstance(value, DenseResourceAttr):
                    if value not in known:
                        known[value] = _elements(value, interface, op)
                    table[name] = known[value]


_LOCK = threading.RLock()


@contextmanager
def own_resources(context: Context, text: str) -> Generator[None]:
    """Isolate the resources of `text`, which the block parses, from those of other texts.

    xDSL has one table of resources for all contexts, in which equal names of two texts collide.
    """
    interface = context.get_dialect("builtin").get_interface(OpAsmDialectInterface)
    if "dense_resource<" not in text or interface is None:
        yield
        return
    blobs = interface._blob_storage  # pyright: ignore[reportPrivateUsage]
    with _LOCK:
        others = dict(blobs)
        blobs.clear()
        try:
            yield
        finally:
            blobs.clear()
            blobs.update(others)


def _elements(
    value: DenseResourceAttr, interface: OpAsmDialectInterface | None, op: Operation
) -> Attribute:
    name = value.resource_handle.data
    text = None if interface is None else interface.lookup(name)
    if not text:
        raise MLIRSyntaxError(
            f"there is no resource '{name}' in the file",
            location=source_location(op),
            hint="print the module with its 'dialect_resources', or write 'dense<…>'",
        )
    type = cast(Attribute, value.type)
    if not isinstance(type, TensorType):
        raise MLIRSyntaxError(
            f"resource '{name}' is of {type}, expected a tensor", location=source_location(op)
        )
    tensor_type = cast(AnyTensor, type)
    element_type, shape = tensor_type.element_type, tensor_type.get_shape()
    if is_stored_only(element_type) or DYNAMIC in shape:
        raise UnsupportedError(
            f"resource '{name}' of {tensor_type} cannot be read",
            location=source_location(op),
            hint="use a static shape of floats of 16 bits or more, or integers of 1, 8, 16, 32 "
            "or 64 bits",
        )
    count = 1
    for extent in shape:
        count *= extent
    try:
        data = bytes.fromhex(text.removeprefix("0x"))[_ALIGNMENT_BYTES:]
    except ValueError:
        data = b""
    if len(data) != count * bytes_of(element_type):
        raise MLIRSyntaxError(
            f"resource '{name}' has {len(data)} bytes, expected "
            f"{count * bytes_of(element_type)} for {tensor_type}",
            location=source_location(op),
        )
    if element_type == i1:
        bits = [int(byte != 0) for byte in data]
        return DenseIntOrFPElementsAttr.from_list(cast(Any, tensor_type), bits)
    return DenseIntOrFPElementsAttr(cast(Any, tensor_type), BytesAttr(data))
