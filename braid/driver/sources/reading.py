"""Reading `.mlir` text that is in the syntax of xDSL or of upstream MLIR."""

import re
from typing import cast

from xdsl.context import Context
from xdsl.dialects.arith import Arith, ConstantOp
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp, StringAttr, TensorType, UnregisteredOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Dialect, Operation
from xdsl.irdl import IRDLOperation
from xdsl.rewriter import Rewriter

from braid.analysis.structure.verification import InvalidIRError, verify_module
from braid.driver.sources.missing_ops import missing_ops, unregistered
from braid.driver.sources.resources import inline_resources, own_resources
from braid.frontends.mlir import MLIRSyntaxError, parse_mlir
from braid.frontends.mlir.upstream import UPSTREAM_FILE, from_upstream_text
from braid.passes.infrastructure.context import make_context
from braid.passes.stablehlo.node import CONVERTERS
from braid.support.errors import BraidError, Note, SourceLocation
from braid.support.mlir_bindings import has_bindings_of_stablehlo
from braid.support.upstream_process import EndedError, RejectedError, Request, upstream_text

_ONLY_UPSTREAM = ("arith", "linalg", "math")
"""Dialects whose ops stay unregistered: xDSL's are fewer, older, or on scalars alone."""

_WITHOUT_CLASS = ("tensor.generate",)
"""Other ops that xDSL has no class of, and that a conversion replaces."""

_PUBLIC = StringAttr("public")
"""The visibility of functions that do not say theirs."""

_STABLEHLO = re.compile(r"\b(?:stablehlo|chlo)\.")

_CHLO = re.compile(r"\bchlo\.([a-z_0-9]+)")

_TEXT = "-"
"""The name that upstream gives the file of a text."""


def read_mlir(context: Context, text: str, file: str) -> ModuleOp:
    """Return the valid module `text`; text that xDSL does not parse is read by upstream if it is
    installed.

    Ops of `linalg` and `math` that upstream read are unregistered ones. Raises `MLIRSyntaxError`
    or `InvalidIRError`, with xDSL's diagnostic, where neither takes the text.
    """
    try:
        with own_resources(context, text):
            module = parse_mlir(context, text, file).module
            inline_resources(context, module)
        verify_module(module)
        _drop_default_visibility(module)
        return module
    except (MLIRSyntaxError, InvalidIRError) as error:
        place = error.location or SourceLocation(file)
        try:
            read = _read_by_upstream(text, file, error)
        except MLIRSyntaxError as other:
            if other.location is None or other.location.file != UPSTREAM_FILE:
                raise
            # The location is in text that upstream has printed, which the user never sees.
            raise MLIRSyntaxError(other.message, location=place, hint=other.hint) from error
        except EndedError as ended:
            raise MLIRSyntaxError(
                f"upstream MLIR ended while it read the module: {ended}",
                location=place,
                hint="look for numbers that are too large, such as dims, counts and alignments",
                notes=[Note(f"braid reads the module up to here: {error.message}")],
            ) from error
        if read is None:
            raise unregistered(context, error) from error
        return read


def _read_by_upstream(text: str, file: str, error: BraidError) -> ModuleOp | None:
    """Return what upstream reads, None where it cannot, or knows no more than `error` says."""
    has_stablehlo = _STABLEHLO.search(text) is not None and has_bindings_of_stablehlo()
    # Exporters write functions for reuse; braid's models have a single one.
    request = Request(text, _pipeline(text) if has_stablehlo else "", stablehlo=has_stablehlo)
    try:
        printed = upstream_text(request)
    except RejectedError as rejected:
        found = _syntax_error(str(rejected), file)
        if has_stablehlo or _is_about_same_op(found, error):
            raise found from rejected
        return None
    except BraidError:
        return None
    context = make_context(allow_unregistered=True, without=_ONLY_UPSTREAM)
    context.register_dialect(Arith.name, lambda: _ARITH_ATTRIBUTES)
    with own_resources(context, printed):
        module = from_upstream_text(context, printed)
        _finish(module, file)
        inline_resources(context, module)
    unknown = [op for op in module.walk() if not _is_known(op)]
    if unknown:
        raise missing_ops(context, unknown)
    return module if _is_valid(module) else None


def _pipeline(text: str) -> str:
    """Return upstream's pipeline for StableHLO: it inlines functions, and expands ops of CHLO that
    braid does not have, or that may be complex.
    """
    has_complex = "complex<" in text
    others = {*_CHLO.findall(text)} - {*CONVERTERS.names()}
    expanding = "chlo-legalize-to-stablehlo," if others or has_complex else ""
    splitting = "stablehlo-complex-math-expander," if has_complex else ""
    on_functions = f"{expanding}{splitting}stablehlo-legalize-composite-to-call"
    return f"builtin.module(func.func({on_functions}),inline,symbol-dce)"


def _syntax_error(message: str, file: str) -> MLIRSyntaxError:
    """Return the first of upstream's diagnostics in `message`."""
    match = re.search(r'error: "-":([0-9]+):([0-9]+): (.*)', message)
    if match is None:
        return MLIRSyntaxError(message, location=SourceLocation(file))
    return MLIRSyntaxError(match[3], location=SourceLocation(file, int(match[1]), int(match[2])))


def _is_about_same_op(found: MLIRSyntaxError, error: BraidError) -> bool:
    """Return whether upstream knows an op that xDSL does not, and says what is wrong with it."""
    op = error.op if isinstance(error, MLIRSyntaxError) else ""
    is_of_op = found.message.startswith((f"custom op '{op}'", f"'{op}' op"))
    return bool(op) and is_of_op and "is unknown" not in found.message


def _drop_default_visibility(module: ModuleOp) -> None:
    """Remove the default visibility of functions, which others leave out."""
    for op in module.ops:
        if isinstance(op, FuncOp) and op.sym_visibility == _PUBLIC:
            op.sym_visibility = None


def _finish(module: ModuleOp, file: str) -> None:
    """Give `module` the name of its file, and its functions the visibility that is the default."""
    _drop_default_visibility(module)
    for op in module.walk():
        location = op.location
        if isinstance(location, FileLineColLoc) and location.filename.data == _TEXT:
            op.location = FileLineColLoc(StringAttr(file), location.line, location.column)
    _register_scalars(module)


_ARITH_ATTRIBUTES = Dialect(Arith.name, [ConstantOp], list(Arith.attributes))


def _register_scalars(module: ModuleOp) -> None:
    """Replace ops of `arith` on scalars by xDSL's, which has no others."""
    known = {op.name: op for op in Arith.operations}
    for op in list(module.walk()):
        op_type = known.get(_name(op)) if isinstance(op, UnregisteredOp) else None
        if op_type is None or any(
            isinstance(v.type, TensorType) for v in (*op.operands, *op.results)
        ):
            continue
        attributes = {key: value for key, value in op.attributes.items() if key != "op_name__"}
        has = cast(type[IRDLOperation], op_type).get_irdl_definition().properties
        attributes |= {key: value for key, value in op.properties.items() if key not in has}
        scalar = op_type.create(
            operands=list(op.operands),
            result_types=list(op.result_types),
            properties={key: value for key, value in op.properties.items() if key in has},
            attributes=attributes,
            location=op.location,
        )
        for old, new in zip(op.results, scalar.results, strict=True):
            new.name_hint = old.name_hint
        Rewriter.replace_op(op, scalar)


def _is_valid(module: ModuleOp) -> bool:
    try:
        verify_module(module)
    except InvalidIRError:
        return False
    return True


def _is_known(op: Operation) -> bool:
    if not isinstance(op, UnregisteredOp):
        return True
    name = op.op_name.data
    return name.partition(".")[0] in _ONLY_UPSTREAM or name in _WITHOUT_CLASS


def _name(op: Operation) -> str:
    return op.op_name.data if isinstance(op, UnregisteredOp) else op.name
