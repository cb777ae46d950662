"""The settings of a module: `braid.settings`, on which alone the effect of passes depends."""

from collections.abc import Mapping
from typing import cast

from xdsl.dialects.builtin import (
    DictionaryAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
    i1,
)
from xdsl.ir import Attribute, Operation, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from braid.dialects.braid.attribute_names import SETTINGS
from braid.support.errors import BraidError
from braid.support.settings import DEFAULTS, Settings, settings_of_environment


@irdl_attr_definition
class SettingsAttr(ParametrizedAttribute):
    """The settings that a module is compiled with, beside its target: those that are not default.

    A module with this attribute says all of its settings: those that it does not name have their
    defaults, whatever the environment says.

    ```mlir
    {braid.settings = #braid.settings<{numerics = "strict", kernels = "best"}>}
    ```
    """

    name = "braid.settings"

    entries: DictionaryAttr = param_def()

    @staticmethod
    def of(settings: Settings) -> "SettingsAttr":
        """Return the attribute that says `settings`."""
        return SettingsAttr(DictionaryAttr({k: _attribute(v) for k, v in settings.said.items()}))

    @property
    def settings(self) -> Settings:
        """The settings. Raises BraidError for an unknown name or value."""
        return DEFAULTS.with_given({k: _plain(v) for k, v in self.entries.data.items()})

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        """Read `<{name = "value"}>`."""
        with parser.in_angle_brackets():
            return [parser.parse_attribute()]

    def print_parameters(self, printer: Printer) -> None:
        """Print `<{name = "value"}>`."""
        with printer.in_angle_brackets():
            printer.print_attribute(self.entries)

    def verify(self) -> None:
        """Raise VerifyException for an unknown name or value of a setting."""
        try:
            _ = self.settings
        except BraidError as error:
            hint = f"; {error.hint}" if error.hint else ""
            raise VerifyException(f"{error.message}{hint}") from None


def settings_of(op: Operation) -> Settings:
    """Return the settings of the module that is or contains `op`, by default the default
    settings."""
    attribute = outermost(op).attributes.get(SETTINGS)
    return attribute.settings if isinstance(attribute, SettingsAttr) else DEFAULTS


def write_settings(module: ModuleOp, given: Mapping[str, object]) -> None:
    """Write the `given` settings on `module`, in addition to those that it has.

    A module without the attribute has the settings of the environment; default settings need no
    attribute. Raises BraidError for a setting, or a variable of the environment, with a value that
    is none.
    """
    own = module.attributes.get(SETTINGS)
    if own is None:
        settings = settings_of_environment().with_given(given)
    elif isinstance(own, SettingsAttr):
        settings = own.settings.with_given(given)
    else:
        return  # The verifier reports invalid ones.
    if own is not None or settings != DEFAULTS:
        module.attributes[SETTINGS] = SettingsAttr.of(settings)


def say_settings(module: ModuleOp) -> None:
    """Write the settings on `module` even if they are the default ones.

    No environment can change them then.
    """
    module.attributes[SETTINGS] = SettingsAttr.of(settings_of(module))


def outermost(op: Operation) -> Operation:
    """Return the outermost op around `op`, mostly its module."""
    while (parent := op.parent_op()) is not None:
        op = parent
    return op


def _attribute(value: str | bool) -> Attribute:
    return IntegerAttr.from_bool(value) if isinstance(value, bool) else StringAttr(value)


def _plain(attribute: Attribute) -> object:
    """Return the value of an attribute; an invalid value is returned as it is."""
    if isinstance(attribute, StringAttr):
        return attribute.data
    if isinstance(attribute, IntegerAttr):
        number = cast("IntegerAttr[IntegerType]", attribute)
        return bool(number.value.data) if number.type == i1 else str(number)
    return str(attribute)
