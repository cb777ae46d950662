"""`--verify-roundtrip`: what is printed is read back as the same IR."""

from xdsl.context import Context
from xdsl.dialects.builtin import DenseResourceAttr, ModuleOp

from braid.frontends.mlir import parse_mlir
from braid.support.errors import BraidError
from braid.tools.opt.printer import FormattedPrinter, PrintFormat


def verify_round_trip(context: Context, module: ModuleOp, file: str) -> None:
    """Print a module in its custom and its generic form, and read each back.

    Raises:
        BraidError: one cannot be read, or is a different module.

    """
    for form, print_format in (
        ("custom", PrintFormat(debuginfo=True)),
        ("generic", PrintFormat(generic=True, debuginfo=True)),
    ):
        printer = FormattedPrinter(print_format)
        printer.print_op(module)
        printer.print_metadata(context.loaded_dialects)
        name = f"{file} in its {form} form"
        try:
            again = parse_mlir(context, printer.text, name).module
        except BraidError as error:
            raise BraidError(
                f"the {form} form of the module cannot be read back: {error.message}",
                location=error.location,
                hint="this is a bug of a dialect's printer or parser",
            ) from error
        _share_resources(module, again)
        if not module.is_structurally_equivalent(again):
            raise BraidError(
                f"the {form} form of the module is read back as another module",
                hint="this is a bug of a dialect's printer or parser",
            )


def _share_resources(module: ModuleOp, again: ModuleOp) -> None:
    """Give resources of `again` the names that they have in `module`.

    A module that is read again into the same context gets new names.
    """
    for op, other in zip(module.walk(), again.walk(), strict=False):
        for ours, theirs in ((op.attributes, other.attributes), (op.properties, other.properties)):
            for name, attribute in ours.items():
                same = theirs.get(name)
                if not isinstance(attribute, DenseResourceAttr):
                    continue
                if isinstance(same, DenseResourceAttr) and attribute.type == same.type:
                    theirs[name] = attribute
