"""An op about which only declared facts are known."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import inf
from typing import cast

from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
    f64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    attr_def,
    irdl_op_definition,
    opt_attr_def,
    var_operand_def,
    var_result_def,
)
from xdsl.utils.exceptions import VerifyException

from braid.dialects.braid.base import AnyTensor, TensorOp, require, shape_of
from braid.dialects.braid.layout import InvalidLayout, Layout
from braid.dialects.braid.relayout import Array
from braid.support.errors import UnsupportedError, did_you_mean

Cost = float | Mapping[str, float]
"""Seconds, or amounts by resource of the target."""


@irdl_op_definition
class OpaqueOp(TensorOp):
    """An op known by its name and its declared properties; passes treat it like any other.

    - `cost`: a float, seconds of one run, or a dictionary from resource (a unit or a memory of
      the target; `seconds`) to a number;
    - `layouts`: the choices of layouts, an array of dictionaries `{operands = ["l0", …],
      results = ["l1", …], cost = …}` with one name per operand and result: a tag, or an abstract
      layout (an identifier that ends in a digit). `cost` is optional and replaces the op's cost in
      this choice;
    - `backends`: the backends that can run it, an array of names, or a dictionary from name to
      cost;
    - `bytes`: bytes of each result in memory, instead of the bytes of its type.

    Fails verification if one of these has another form. It cannot be interpreted or lowered.

    ```mlir
    %y = braid.opaque "attention"(%x) {cost = 2.0e-3 : f64, bytes = array<i64: 4096>,
        layouts = [{operands = ["l0"], results = ["l1"], cost = 1.0e-3 : f64}],
        backends = ["gpu", "cpu"]} : (tensor<4xf32>) -> tensor<4xf32>
    ```
    """

    name = "braid.opaque"

    inputs = var_operand_def(TensorType)
    kind = attr_def(StringAttr)
    cost = opt_attr_def(FloatAttr[AnyFloat] | DictionaryAttr)
    layouts = opt_attr_def(ArrayAttr[DictionaryAttr])
    backends = opt_attr_def(ArrayAttr[StringAttr] | DictionaryAttr)
    bytes = opt_attr_def(DenseArrayBase[IntegerType])
    outputs = var_result_def(TensorType)

    assembly_format = "$kind `(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs)"

    @staticmethod
    def get(
        kind: str,
        inputs: Sequence[SSAValue | Operation],
        result_types: Sequence[Attribute],
        *,
        cost: Cost | None = None,
        attributes: Mapping[str, Attribute] | None = None,
    ) -> "OpaqueOp":
        """Build an opaque op; `attributes` are added unchanged."""
        data = {"kind": StringAttr(kind), **(attributes or {})}
        if cost is not None:
            data["cost"] = cost_attribute(cost)
        return OpaqueOp.create(
            operands=[SSAValue.get(value) for value in inputs],
            result_types=result_types,
            attributes=data,
        )

    @property
    def declared_cost(self) -> Cost | None:
        """The declared cost as plain numbers, None where none is declared."""
        return None if self.cost is None else plain_cost(self.cost)

    @property
    def declares_facts(self) -> bool:
        """True if anything is declared that a group around the op would hide."""
        facts = (self.cost, self.layouts, self.backends, self.bytes)
        return any(fact is not None for fact in facts)

    def infer_result_types(self) -> Sequence[AnyTensor]:
        """Return the declared types, and check the form of the declared facts."""
        self._verify_names()
        if self.cost is not None:
            plain_cost(self.cost)
        if isinstance(self.backends, DictionaryAttr):
            for cost in self.backends.data.values():
                plain_cost(cost)
        require(
            self.layouts is None or len(self.layouts) > 0, "layouts is empty: no choice is left"
        )
        for choice in self.layouts or ():
            self._verify_choice(choice)
        if self.bytes is not None:
            sizes, count = self.bytes.get_values(), len(self.results)
            require(len(sizes) == count, f"bytes has {len(sizes)} entries, expected {count}")
            require(min(sizes, default=0) >= 0, f"bytes is {sizes}, expected no negatives")
        return [self.result_type(index) for index in range(len(self.results))]

    def verify_element_types(self) -> None:
        """Accept any element type, since the op is not computed."""

    def evaluate(self, *operands: Array) -> tuple[Array, ...]:
        """Raise UnsupportedError: the computation of the op is unknown."""
        raise UnsupportedError(
            f"opaque op '{self.kind.data}' cannot be run: only its declared costs are known"
        )

    def _verify_names(self) -> None:
        """Raise VerifyException for a name that looks like a misspelled declaration.

        Attributes of any other name are allowed.
        """
        if self.attributes.keys() <= _FACTS:
            return
        for name in sorted(self.attributes.keys() - _FACTS):
            if "." not in name and (
                meant := did_you_mean(name, _FACTS - self.attributes.keys(), 0.85)
            ):
                raise VerifyException(
                    f"the attribute '{name}' declares nothing; {meant} Otherwise give it a "
                    f"namespace, such as 'my.{name}'"
                )

    def _verify_choice(self, choice: DictionaryAttr) -> None:
        # Not `require`: the messages would be made for every choice of a large graph.
        for key, values in (("operands", self.operands), ("results", self.results)):
            names = choice.data.get(key)
            if not isinstance(names, ArrayAttr):
                raise VerifyException(f"a choice of layouts lacks the array '{key}'")
            layouts = _layouts(cast(ArrayAttr[Attribute], names))
            if len(layouts) != len(values):
                raise VerifyException(f"{len(layouts)} layouts of {key}, expected {len(values)}")
            for layout, value in zip(layouts, values, strict=True):
                if not layout.is_abstract and layout.rank != len(shape_of(value)):
                    raise VerifyException(f"layout '{layout}' does not fit {value.type} in rank")
        if unknown := choice.data.keys() - _CHOICE_FIELDS:
            raise VerifyException(
                f"a choice of layouts has fields {sorted(unknown)}, which mean nothing"
            )
        if "cost" in choice.data:
            plain_cost(choice.data["cost"])


_FACTS = frozenset({"kind", "cost", "layouts", "backends", "bytes"})

_CHOICE_FIELDS = frozenset({"operands", "results", "cost"})


def cost_attribute(cost: Cost) -> FloatAttr[Float64Type] | DictionaryAttr:
    """Return the attribute that declares this cost."""
    if isinstance(cost, Mapping):
        return DictionaryAttr({name: FloatAttr(value, f64) for name, value in cost.items()})
    return FloatAttr(cost, f64)


def plain_cost(cost: Attribute) -> Cost:
    """Return a declared cost as plain numbers. Raises VerifyException for another form."""
    if isinstance(cost, DictionaryAttr):
        return {name: _amount(value) for name, value in cost.data.items()}
    return _amount(cost)


def _amount(attribute: Attribute) -> float:
    if not isinstance(attribute, FloatAttr | IntegerAttr):
        raise VerifyException(f"a cost is {attribute}, expected a number")
    number = cast(FloatAttr | IntegerAttr, attribute).value.data
    if not 0 <= number < inf:  # not `require`: the message would be made for every cost
        wanted = "no negative number" if number < 0 else "a finite number"
        raise VerifyException(f"a cost is {attribute}, expected {wanted}")
    return float(number)


@lru_cache(maxsize=4096)
def _layouts(names: ArrayAttr[Attribute]) -> tuple[Layout, ...]:
    """Return the layouts of these names. Raises VerifyException for an invalid name."""
    layouts: list[Layout] = []
    for name in names.data:
        if not isinstance(name, StringAttr):
            raise VerifyException(f"a layout of a choice is {name}, expected a string")
        try:
            layouts.append(Layout.named(name.data))
        except InvalidLayout as error:
            raise VerifyException(str(error)) from None
    return tuple(layouts)
