"""Attributes of the braid dialect: layouts in types, targets of modules."""

from collections.abc import Mapping
from typing import Any, cast

from xdsl.dialects.builtin import DictionaryAttr, NoneAttr, StringAttr, TensorType
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from braid.dialects.braid.layout import InvalidLayout, Layout
from braid.dialects.braid.sizes import SizedLayoutAttr, sizes_of_type


@irdl_attr_definition
class LayoutAttr(ParametrizedAttribute):
    """The way a tensor is stored, as the encoding of its type.

    The shape in the type stays the logical shape. Aliases such as `NHWC` are accepted and
    printed as the tag. An identifier that ends in a digit (`l0`) is an abstract layout, known by
    name only, for graphs of `braid.opaque` ops. Verification fails for a tag that means nothing;
    that its rank is the tensor's is checked by the op that has such an operand or result.

    ```mlir
    tensor<1x64x56x56xf32, #braid.layout<"aBcd16b">>
    ```
    """

    name = "braid.layout"

    tag: StringAttr = param_def()

    @staticmethod
    def of(layout: Layout) -> "LayoutAttr":
        """Return the attribute for a layout."""
        return LayoutAttr(StringAttr(layout.tag))

    @property
    def layout(self) -> Layout:
        """The parsed tag."""
        return Layout.named(self.tag.data)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        """Parse `<"tag">` and replace an alias by its tag."""
        with parser.in_angle_brackets():
            text = parser.parse_str_literal("layout tag")
        try:
            return [StringAttr(Layout.named(text).tag)]
        except InvalidLayout as error:
            parser.raise_error(str(error))

    def print_parameters(self, printer: Printer) -> None:
        """Print `<"tag">`."""
        with printer.in_angle_brackets():
            printer.print_attribute(self.tag)

    def verify(self) -> None:
        """Raise VerifyException for a tag that names no layout."""
        try:
            Layout.named(self.tag.data)
        except InvalidLayout as error:
            raise VerifyException(str(error)) from None


@irdl_attr_definition
class TargetAttr(ParametrizedAttribute):
    """The target that a module is compiled for: its name, and options by name.

    The option `cpu` is the CPU of its host, by LLVM's name. Options are strings and may be absent;
    that the target and its options exist is checked by who resolves it.

    ```mlir
    {braid.target = #braid.target<"host", {cpu = "haswell"}>}
    ```
    """

    name = "braid.target"

    target: StringAttr = param_def()
    options: DictionaryAttr = param_def()

    @staticmethod
    def of(target: str, options: Mapping[str, str]) -> "TargetAttr":
        """Return the attribute for a target with options."""
        entries = {key: StringAttr(value) for key, value in sorted(options.items())}
        return TargetAttr(StringAttr(target), DictionaryAttr(entries))

    def strings(self) -> dict[str, str]:
        """Return the options by name."""
        return {key: cast(StringAttr, value).data for key, value in self.options.data.items()}

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        """Parse `<"name">` or `<"name", {option = "value"}>`."""
        with parser.in_angle_brackets():
            target = StringAttr(parser.parse_str_literal("name of a target"))
            if parser.parse_optional_punctuation(",") is None:
                return [target, DictionaryAttr({})]
            return [target, parser.parse_attribute()]

    def print_parameters(self, printer: Printer) -> None:
        """Print `<"name", {…}>`."""
        with printer.in_angle_brackets():
            printer.print_attribute(self.target)
            printer.print_string(", ")
            printer.print_attribute(self.options)

    def verify(self) -> None:
        """Raise VerifyException for an option that is not a string."""
        for key, value in self.options.data.items():
            if not isinstance(value, StringAttr):
                raise VerifyException(f"option '{key}' is {value}, expected a string")


def layout_of(tensor: Attribute) -> Layout:
    """Return the layout of a tensor of this type, row-major where the type does not say."""
    tensor_type = cast("TensorType[Any]", tensor)
    encoding = tensor_type.encoding
    # Checked first, since the check is the cheapest one: no other class inherits from it.
    if not isinstance(encoding, NoneAttr) and isinstance(encoding, LayoutAttr | SizedLayoutAttr):
        return encoding.layout
    return Layout.row_major(tensor_type.get_num_dims())


def with_layout(tensor: Attribute, layout: Layout) -> TensorType[Any]:
    """Return the same tensor stored in `layout`; row-major is spelled as no layout."""
    tensor_type = cast("TensorType[Any]", tensor)
    sizes = sizes_of_type(tensor_type)
    if sizes is not None:
        encoding = sizes if layout.is_row_major else SizedLayoutAttr.of(layout, sizes)
    else:
        encoding = NoneAttr() if layout.is_row_major else LayoutAttr.of(layout)
    return TensorType(tensor_type.element_type, tensor_type.get_shape(), encoding)
