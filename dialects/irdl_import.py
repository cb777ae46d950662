"""Dialects of IRDL text as dialects of xDSL, whose verifier checks the constraints.

xDSL's own interpreter of IRDL leaves out variadics, attributes, regions and several constraints,
so that definitions are translated here. Ops are read and printed in their generic form.

Source: MLIR, "'irdl' Dialect".
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from typing_extensions import override
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.irdl import irdl
from xdsl.dialects.irdl.irdl_to_pyrdl import python_name
from xdsl.ir import (
    Attribute,
    Dialect,
    Operation,
    ParametrizedAttribute,
    Region,
    SSAValue,
    TypeAttribute,
)
from xdsl.irdl import (
    AllOf,
    AnyAttr,
    AttrConstraint,
    AttributeDef,
    AttrSizedOperandSegments,
    AttrSizedResultSegments,
    BaseAttr,
    EqAttrConstraint,
    IRDLOperation,
    OpDef,
    OperandDef,
    OptOperandDef,
    OptResultDef,
    ParamAttrConstraint,
    ParamAttrDef,
    ParamDef,
    RegionDef,
    ResultDef,
    VarConstraint,
    VarOperandDef,
    VarResultDef,
    VerificationContext,
    get_accessors_from_op_def,
)
from xdsl.utils.exceptions import VerifyException

from braid.dialects.irdl_export import UPSTREAM_NAMES
from braid.support.errors import BraidError

_OPERANDS = {"single": OperandDef, "optional": OptOperandDef, "variadic": VarOperandDef}
_RESULTS = {"single": ResultDef, "optional": OptResultDef, "variadic": VarResultDef}

AttributeOfName = Callable[[str], type[Attribute] | None]
"""Gives the class of a registered attribute or type by its name, such as `builtin.string`."""


def import_irdl(module: ModuleOp, known: AttributeOfName) -> list[Dialect]:
    """Return the dialects that a verified module of IRDL defines.

    Raises:
        BraidError: a definition uses constraints that cannot be checked here, such as a predicate
        in C++.

    """
    dialects = [op for op in module.ops if isinstance(op, irdl.DialectOp)]
    attributes = {
        definition.qualified_name: _attribute_class(definition)
        for dialect in dialects
        for definition in dialect.body.block.ops
        if isinstance(definition, irdl.AttributeOp | irdl.TypeOp)
    }
    reader = _Reader(attributes, known)
    return [reader.dialect(dialect) for dialect in dialects]


def _attribute_class(
    definition: irdl.AttributeOp | irdl.TypeOp,
) -> type[ParametrizedAttribute]:
    is_type = isinstance(definition, irdl.TypeOp)
    bases = (TypeAttribute, ParametrizedAttribute) if is_type else (ParametrizedAttribute,)
    # xDSL compares the fields of a dataclass, which is not made until the parameters are known.
    body = {"name": definition.qualified_name, "__eq__": _is_same, "__hash__": _hash}
    return cast(type[ParametrizedAttribute], type(definition.sym_name.data, bases, body))


def _is_same(attribute: ParametrizedAttribute, other: object) -> bool:
    same_class = type(attribute) is type(other)
    return same_class and attribute.parameters == cast(ParametrizedAttribute, other).parameters


def _hash(attribute: ParametrizedAttribute) -> int:
    return hash((type(attribute), attribute.parameters))


@dataclass(frozen=True)
class _OneOf(AttrConstraint):
    """The first of several constraints that holds; xDSL's `AnyOf` takes no two of one class."""

    constraints: tuple[AttrConstraint, ...]

    @override
    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:
        messages: list[str] = []
        for constraint in self.constraints:
            try:
                constraint.verify(attr, deepcopy(constraint_context))
            except VerifyException as error:
                messages.append(str(error))
            else:
                constraint.verify(attr, constraint_context)
                return
        raise VerifyException(" or ".join(messages))

    @override
    def mapping_type_vars(self, type_var_mapping: object) -> "_OneOf":
        return self


class _Reader:
    """Reads definitions whose constraints may name `attributes` of the same file."""

    def __init__(
        self, attributes: Mapping[str, type[ParametrizedAttribute]], known: AttributeOfName
    ) -> None:
        self._attributes = attributes
        self._known = known
        self._constraints: dict[SSAValue, AttrConstraint] = {}

    def dialect(self, dialect: irdl.DialectOp) -> Dialect:
        operations: list[type[Operation]] = []
        attributes: list[type[Attribute]] = []
        for definition in dialect.body.block.ops:
            if isinstance(definition, irdl.OperationOp):
                operations.append(self._operation(definition))
            elif isinstance(definition, irdl.AttributeOp | irdl.TypeOp):
                attributes.append(self._attribute(definition))
        return Dialect(dialect.sym_name.data, operations, attributes)

    def _attribute(self, definition: irdl.AttributeOp | irdl.TypeOp) -> type[Attribute]:
        name = definition.qualified_name
        attribute = self._attributes[name]
        found = ParamAttrDef(name, [])
        for op in self._read(definition.body):
            if isinstance(op, irdl.ParametersOp):
                found.parameters = [
                    (python_name(key), ParamDef(constraint))
                    for key, constraint in self._named(op.names, op.args)
                ]
        attribute.get_irdl_definition = staticmethod(lambda: found)
        return attribute

    def _operation(self, definition: irdl.OperationOp) -> type[Operation]:
        name = definition.qualified_name
        found = OpDef(name)
        sizes: dict[str, int] = {}
        for op in self._read(definition.body):
            if isinstance(op, irdl.OperandsOp):
                found.operands = list(self._values(op, _OPERANDS))
            elif isinstance(op, irdl.ResultsOp):
                found.results = list(self._values(op, _RESULTS))
            elif isinstance(op, irdl.AttributesOp):
                values = self._named(op.attribute_value_names, op.attribute_values)
                found.attributes = {key: AttributeDef(constraint) for key, constraint in values}
            elif isinstance(op, irdl.RegionsOp):
                for key, region in zip(op.names, op.args, strict=True):
                    found.regions.append((python_name(key.data), RegionDef()))
                    size = cast(irdl.RegionOp, region.owner).number_of_blocks
                    if size is not None:
                        sizes[python_name(key.data)] = size.value.data
        if _variadics(found.operands, VarOperandDef) > 1:
            found.options.append(AttrSizedOperandSegments())
        if _variadics(found.results, VarResultDef) > 1:
            found.options.append(AttrSizedResultSegments())
        body = dict(IRDLOperation.__dict__) | {"name": name}
        operation = type(definition.get_py_class_name(), (IRDLOperation,), body)
        accessors = get_accessors_from_op_def(found, partial(_verify_sizes, sizes))
        for key, value in accessors.items():
            setattr(operation, key, value)
        return operation

    def _values(self, op: irdl.OperandsOp | irdl.ResultsOp, kinds: Mapping[str, Any]) -> Any:
        variadicities = op.variadicity.value.data
        for (key, constraint), kind in zip(
            self._named(op.names, op.args), variadicities, strict=True
        ):
            yield python_name(key), kinds[kind.data.value](constraint)

    def _named(
        self, names: Iterable[StringAttr], values: Iterable[SSAValue]
    ) -> Iterator[tuple[str, AttrConstraint]]:
        for name, value in zip(names, values, strict=True):
            yield name.data, self._constraints[value]

    def _read(self, body: Region) -> Iterator[Operation]:
        """Give the ops of a definition, after the constraints before each are known."""
        for op in body.block.ops:
            constraint = self._constraint(op)
            if constraint is None:
                yield op
                continue
            (output,) = op.results
            if output.has_more_than_one_use():  # all that it constrains are the same then
                constraint = VarConstraint(f"V{len(self._constraints)}", constraint)
            self._constraints[output] = constraint

    def _constraint(self, op: Operation) -> AttrConstraint | None:
        if isinstance(op, irdl.IsOp):
            return EqAttrConstraint(op.expected)
        if isinstance(op, irdl.AnyOp):
            return AnyAttr()
        if isinstance(op, irdl.AnyOfOp):
            return _OneOf(tuple(self._constraints[arg] for arg in op.args))
        if isinstance(op, irdl.AllOfOp):
            return AllOf(tuple(self._constraints[arg] for arg in op.args))
        if isinstance(op, irdl.BaseOp):
            symbol = op.base_ref.string_value() if op.base_ref is not None else None
            return BaseAttr(self._class(op.base_name.data if op.base_name else f"@{symbol}"))
        if isinstance(op, irdl.ParametricOp):
            base = self._class(f"@{op.base_type.string_value()}")
            arguments = tuple(self._constraints[arg] for arg in op.args)
            return ParamAttrConstraint(cast(type[ParametrizedAttribute], base), arguments)
        if isinstance(op, irdl.CPredOp):
            raise BraidError(
                f"IRDL: the predicate '{op.pred.data}' is in C++, which cannot be checked here",
                hint="leave the constraint out, or write it with irdl.base and irdl.any_of",
            )
        return None

    def _class(self, name: str) -> type[Attribute]:
        """Return the class of `@dialect::@name`, `!dialect.name` or `#dialect.name`."""
        plain = name.lstrip("@!#").replace("::@", ".")
        found = self._attributes.get(plain) or UPSTREAM_NAMES.get(name) or self._known(plain)
        if found is None:
            raise BraidError(f"IRDL: no dialect that is known here has the attribute '{name}'")
        return found


def _variadics(definitions: Iterable[tuple[str, object]], kind: type[object]) -> int:
    return sum(isinstance(definition, kind) for _, definition in definitions)


def _verify_sizes(sizes: Mapping[str, int], op: Operation) -> None:
    for name, size in sizes.items():
        region = cast(Region, getattr(op, name))
        if len(region.blocks) != size:
            raise VerifyException(
                f"region '{name}' has {len(region.blocks)} blocks, expected {size}"
            )
