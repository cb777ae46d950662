"""Modules of upstream MLIR's Python bindings as xDSL modules, and back.

The package that a module comes from (`mlir`, `torch_mlir`, …) is its owner's business: only
methods of the module itself are called.
"""

from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp, UnknownLoc, UnregisteredOp
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation

from braid.dialects.braid import Braid
from braid.dialects.printing import CachingPrinter
from braid.dialects.upstream_form import to_upstream_form
from braid.frontends.mlir.parser import parse_mlir
from braid.support.errors import BraidError
from braid.support.upstream_process import generic_text

UPSTREAM_FILE = "<module>"
"""The file of an op without a location of its own: the text of the module it came from."""


def is_upstream_module(value: object) -> bool:
    """Return whether `value` is a `Module` of some package of MLIR's Python bindings."""
    return type(value).__name__ == "Module" and hasattr(value, "operation")


def has_dialect(context: Any, name: str) -> bool:
    """Return whether a `Context` of some package of MLIR's Python bindings has a dialect loaded."""
    try:
        context.get_dialect_descriptor(name)
    except ValueError:
        return False
    return True


def from_upstream(context: Context, module: Any) -> ModuleOp:
    """Return the upstream `module` as one of xDSL, with its locations.

    Properties that xDSL's op of the name does not have become attributes, which is how upstream
    takes them back. Raises `MLIRSyntaxError` for ops and types that `context` does not know.
    """
    return from_upstream_text(context, generic_text(module.operation))


def from_upstream_text(context: Context, text: str) -> ModuleOp:
    """Return the module that upstream printed as `text`; see `from_upstream`."""
    parsed = parse_mlir(context, text, UPSTREAM_FILE).module
    for op in parsed.walk():
        _keep_unknown_properties(op)
    return parsed


def _keep_unknown_properties(op: Operation) -> None:
    if isinstance(op, UnregisteredOp) or not isinstance(op, IRDLOperation):
        return
    known = op.get_irdl_definition().properties
    for name in [name for name in op.properties if name not in known]:
        op.attributes[name] = op.properties.pop(name)


def replace_upstream(context: Context, module: Any, replacement: ModuleOp) -> None:
    """Give the upstream `module` the ops and attributes of `replacement`, in place.

    References to the module itself stay valid, those to ops in it do not, as after any pass.
    If braid's IRDL is loaded in its context, they get the form that IRDL can describe.
    Raises `BraidError` where upstream rejects the result; `module` is then unchanged.
    """
    if has_dialect(module.context, Braid.name):
        to_upstream_form(replacement)
    for op in replacement.walk():
        location = op.location
        if isinstance(location, FileLineColLoc) and location.filename.data == UPSTREAM_FILE:
            op.location = UnknownLoc()
    printer = CachingPrinter(generic=True, debuginfo=True)
    printer.print_op(replacement)
    printer.print_metadata(context.loaded_dialects)
    module_class = cast(Any, type(module))
    try:
        parsed = module_class.parse(printer.text, context=module.context)
    except Exception as error:
        # Its class is that of the caller's package.
        raise BraidError(
            f"upstream MLIR rejects the module after the passes: {error}", hint=_hint(module)
        ) from error
    _move_contents(parsed, module)


def _hint(module: Any) -> str | None:
    if module.context.allow_unregistered_dialects:
        return None
    return "set 'allow_unregistered_dialects' of the module's context, or load braid's IRDL into it"


def _move_contents(source: Any, target: Any) -> None:
    for op in list(target.body.operations):
        op.operation.erase()
    for op in list(source.body.operations):
        op.detach_from_parent()
        target.body.append(op)
    old, new = target.operation.attributes, source.operation.attributes
    for name in _names(old):
        del old[name]
    for name in _names(new):
        old[name] = new[name]


def _names(attributes: Any) -> list[str]:
    """Return the names in an attribute map, whose iterator yields pairs in older bindings."""
    return [entry if isinstance(entry, str) else entry.name for entry in attributes]
