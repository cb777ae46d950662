"""A dialect of xDSL as IRDL, with which upstream tools read and check the generic form of its ops.

xDSL's own `dialect_to_irdl` knows neither constraints nor attributes nor regions. Source of the
meaning: MLIR, "'irdl' Dialect". Three of its rules shape the result:

- a constraint that is used twice binds, so every operand has a separate constraint;
- for the same reason, all values that stand for one variadic must have one type; ops with others
  are described in their form of `dialects/upstream_form.py`, as `mixed_…`;
- attributes are required, so optional ones are left out; they are accepted like any other.

IRDL has no traits either: mlir-opt sees no terminator in `braid.yield`, which that form replaces.
`braid.load_irdl` attaches the trait.
"""

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Dialect, Operation, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import (
    AttrConstraint,
    IRDLOperation,
    OptAttributeDef,
    RangeConstraint,
    RangeLengthConstraint,
    RangeOf,
    VariadicDef,
)

from braid.dialects.braid.elementwise import ElementwiseOp
from braid.dialects.upstream_form import SEGMENTS, has_mixed_form, mixed_name

_BASES: dict[type[Attribute], str] = {
    TensorType: '"!builtin.tensor"',
    ArrayAttr: '"#builtin.array"',
    DenseArrayBase: '"#builtin.dense_array"',
    DictionaryAttr: '"#builtin.dictionary"',
    FloatAttr: '"#builtin.float"',
    IntegerAttr: '"#builtin.integer"',
    StringAttr: '"#builtin.string"',
}
"""The names that upstream gives attributes and types of xDSL."""
UPSTREAM_NAMES = {name.strip('"'): attribute for attribute, name in _BASES.items()}
"""xDSL's attributes and types by their upstream names."""


def export_irdl(dialect: Dialect) -> str:
    """Return the text of an `irdl.dialect` with all attributes and ops of `dialect`."""
    bases = dict(_BASES)
    for attribute in dialect.attributes:
        bases[attribute] = f"@{dialect.name}::@{_own_name(attribute.name)}"
    definitions = [_attribute(attribute, bases) for attribute in dialect.attributes]
    for operation in dialect.operations:
        definitions.append(_operation(operation, bases))
        if has_mixed_form(operation):
            definitions.append(_operation(operation, bases, segments=SEGMENTS))
    body = "\n".join(f"  {line}" for definition in definitions for line in definition)
    return f"irdl.dialect @{dialect.name} {{\n{body}\n}}\n"


class _Definition:
    """The lines in the braces of one definition; every constraint is a separate value."""

    def __init__(self, bases: dict[type[Attribute], str]) -> None:
        self._bases = bases
        self._count = 0
        self.lines: list[str] = []

    def constraint(self, constraint: AttrConstraint | RangeConstraint) -> str:
        """Add a line for `constraint`, or for one value of a range; return its name."""
        if isinstance(constraint, RangeLengthConstraint):
            constraint = constraint.constraint
        if isinstance(constraint, RangeOf):
            constraint = constraint.constr
        known = constraint.get_bases() if isinstance(constraint, AttrConstraint) else None
        bases = [self._bases.get(base) for base in known or ()]
        if len(bases) == 1 and bases[0] is not None:
            return self.value(f"irdl.base {bases[0]}")
        return self.value("irdl.any")

    def value(self, text: str) -> str:
        """Add a line that makes a value; return its name."""
        name = f"%{self._count}"
        self._count += 1
        self.lines.append(f"{name} = {text}")
        return name

    def use(self, op: str, entries: Iterable[str], brackets: str = "()") -> None:
        """Add a line that names the kinds of values, if there are any."""
        if listed := ", ".join(entries):
            self.lines.append(f"{op} {brackets[0]}{listed}{brackets[1]}")

    def text(self, kind: str, name: str) -> list[str]:
        """Return the text of the whole definition."""
        return [f"{kind} @{name} {{", *(f"  {line}" for line in self.lines), "}"]


def _own_name(name: str) -> str:
    return name.partition(".")[2]


def _attribute(attribute: type[Attribute], bases: dict[type[Attribute], str]) -> list[str]:
    assert issubclass(attribute, ParametrizedAttribute), "the dialect has no other attributes"
    definition = _Definition(bases)
    parameters = attribute.get_irdl_definition().parameters
    entries = [f"{name}: {definition.constraint(p.constr)}" for name, p in parameters]
    definition.use("irdl.parameters", entries)
    kind = "irdl.type" if issubclass(attribute, TypeAttribute) else "irdl.attribute"
    return definition.text(kind, _own_name(attribute.name))


_Values = Sequence[tuple[str, RangeConstraint, bool]]
"""Name and constraint of values, and whether they are variadic."""


def _operation(
    operation: type[Operation], bases: dict[type[Attribute], str], segments: int | None = None
) -> list[str]:
    """Return the definition of an op, or of its form with `segments` of each variadic."""
    assert issubclass(operation, IRDLOperation), "the dialect has no other ops"
    body = _Definition(bases)
    definition = operation.get_irdl_definition()
    operands = [(name, d.constr, isinstance(d, VariadicDef)) for name, d in definition.operands]
    if issubclass(operation, ElementwiseOp):
        # A variadic in xDSL only because all rows of the table share one class.
        ((name, constraint, _),) = operands
        operands = [(f"{name}{i}", constraint, False) for i in range(operation.ROW.arity)]
    results = [(name, d.constr, isinstance(d, VariadicDef)) for name, d in definition.results]
    body.use("irdl.operands", _values(body, _segmented(operands, segments)))
    body.use("irdl.results", _values(body, _segmented(results, segments)))
    required = {
        name: attribute.constr
        for name, attribute in definition.attributes.items()
        if not isinstance(attribute, OptAttributeDef)
    }
    entries = [f'"{name}" = {body.constraint(c)}' for name, c in required.items()]
    body.use("irdl.attributes", entries, "{}")
    regions = [f"{name}: {body.value('irdl.region with size 1')}" for name, _ in definition.regions]
    body.use("irdl.regions", regions)
    name = operation.name if segments is None else mixed_name(operation.name)
    return body.text("irdl.operation", _own_name(name))


def _segmented(values: _Values, segments: int | None) -> _Values:
    if segments is None:
        return values
    return [
        (f"{name}{i}", constraint, True) for name, constraint, _ in values for i in range(segments)
    ]


def _values(body: _Definition, values: _Values) -> list[str]:
    return [
        f"{name}: {'variadic ' if variadic else ''}{body.constraint(constraint)}"
        for name, constraint, variadic in values
    ]
