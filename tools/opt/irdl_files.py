"""`--irdl-file`: dialects that a file in IRDL defines."""

from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import UnregisteredAttr
from xdsl.ir import Attribute, Block, Dialect

from braid.analysis.structure.verification import verify_module
from braid.dialects.irdl_import import import_irdl
from braid.frontends.mlir import parse_mlir, read_mlir_text
from braid.support.errors import BraidError


def register_irdl(context: Context, path: Path) -> None:
    """Register the dialects of a file in a context.

    Raises:
        BraidError: the file cannot be read, is no valid IRDL, or defines a dialect that is
            registered already.

    """
    module = parse_mlir(context, read_mlir_text(path), str(path)).module
    for op in module.walk():
        for region in op.regions:
            if not region.blocks:  # xDSL reads a definition without a body so
                region.add_block(Block())
    verify_module(module)

    def known(name: str) -> type[Attribute] | None:
        found = context.get_optional_attr(name)
        return None if found is None or issubclass(found, UnregisteredAttr) else found

    dialects = import_irdl(module, known)
    if not dialects:
        raise BraidError(f"'{path}' defines no dialect", hint="expected an irdl.dialect")
    for dialect in dialects:
        if dialect.name in context.registered_dialect_names:
            raise BraidError(
                f"'{path}' defines the dialect '{dialect.name}', which is registered already",
                hint="--show-dialects lists those that are",
            )
        _register(context, dialect)


def _register(context: Context, dialect: Dialect) -> None:
    context.register_dialect(dialect.name, lambda: dialect)
