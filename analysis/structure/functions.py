"""Functions of a module, found by name all at once."""

from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation


def functions_beside(op: Operation) -> Mapping[str, FuncOp]:
    """Return the functions of the module that `op` is in, by name; none outside of a module.

    To look each callee up alone takes as long as there are functions.
    """
    parent = op
    while parent is not None and not isinstance(parent, ModuleOp):
        parent = parent.parent_op()
    if parent is None:
        return {}
    return {each.sym_name.data: each for each in parent.ops if isinstance(each, FuncOp)}


def named_symbols(module: ModuleOp) -> frozenset[str]:
    """Return the symbols to which ops of `module` refer, such as functions that are called or
    launched.
    """
    return frozenset(
        attribute.root_reference.data
        for op in module.walk()
        for attribute in (*op.attributes.values(), *op.properties.values())
        if isinstance(attribute, SymbolRefAttr)
    )
