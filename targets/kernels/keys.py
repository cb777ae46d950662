"""Identity of groups and kernels: what a measurement, a schedule or an object is of.

`GroupKey` identifies the computation of a kernel, the storage of its tensors, and the machine;
measurements and tuned schedules refer to it. `KernelKey` adds who makes it and how: what was
measured. Neither knows a source: a family says by its `version` that it emits other code.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from io import StringIO
from types import MappingProxyType
from typing import Any, cast

from xdsl.dialects.builtin import NoneAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.printer import Printer

from braid.analysis.storage.layout_choice import LayoutChoice
from braid.analysis.storage.strided_storage import boxes_of, overlap_of, stored_choice
from braid.dialects.braid.attributes import with_layout
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp
from braid.support.toolchain import braid_version, distribution_version, toolchain
from braid.targets.kernels.family_names import NAMES_IN_KEYS
from braid.targets.kernels.kernel_family import KernelFamily
from braid.targets.kernels.schedules import Entries
from braid.targets.machines.cpus import NATIVE, cpu_machine
from braid.targets.machines.identity import machine_text
from braid.targets.machines.machine import Machine

NUMERICS = "f32 accumulation, contracted multiply-adds"
"""The numerics that kernels may have in the same layouts; approximate algorithms have their own."""

_NOTES = "braid."
"""Names of what passes note on ops begin so; it changes nothing that they compute."""

_OWN = frozenset({"braid", "builtins", "xdsl"})
"""Packages whose versions are in every key."""


def canonical_kernel_text(group: FusedOp) -> str:
    """Return the body of `group`, equal for groups that compute the same in whatever layouts.

    Names of layers, and attributes that passes wrote on the ops, are left out.
    """
    text = StringIO()
    _CanonicalPrinter(stream=text, print_generic_format=True).print_region(group.body)
    return text.getvalue()


def stored_text(group: FusedOp, choice: LayoutChoice | None = None, body: str | None = None) -> str:
    """Return what a kernel of `group` computes, and where its tensors lie.

    It consists of the canonical text, the layouts of operands and results, with strides if these
    are not dense, and the operands that lie in the result or may alias it. Layouts are by default
    as the tensors are stored; `body` is the canonical text where that is known.
    """
    stored = stored_choice(group) if choice is None else choice
    return "\0".join(
        (
            canonical_kernel_text(group) if body is None else body,
            *map(_layout_text, (*stored.operands, *stored.results)),
            f"{sorted(boxes_of(group).items())} {overlap_of(group)}",
        )
    )


@dataclass(frozen=True)
class GroupKey:
    """The key of a kernel's task: `stored` is the `stored_text` of the group, `machine` its text.

    `threads` run it at once. `likely` are the values of symbols at which a kernel for all sizes was
    decided on.
    """

    stored: str
    machine: str
    threads: int = 1
    numerics: str = NUMERICS
    likely: tuple[tuple[str, int], ...] = ()

    @staticmethod
    def of(
        stored: str,
        machine: Machine,
        threads: int = 1,
        likely: Mapping[str, int] = MappingProxyType({}),
    ) -> "GroupKey":
        """Return the key of a group on `machine`."""
        values = tuple(sorted(likely.items()))
        return GroupKey(stored, machine_text(machine), threads, likely=values)

    @property
    def text(self) -> str:
        """All of it."""
        parts = (self.stored, self.machine, str(self.threads), self.numerics)
        return "\0".join((*parts, *(f"{name}={value}" for name, value in self.likely)))


@dataclass(frozen=True)
class KernelKey:
    """A kernel: its computation, and the version and schedule of the family that makes it.

    `packages` are versions of the packages that the family and the ops are from, besides braid.
    """

    group: GroupKey
    family: str
    version: int
    schedule: Entries | None = None
    packages: tuple[str, ...] = ()

    @staticmethod
    def of(
        group: FusedOp,
        key: GroupKey,
        family: KernelFamily | None,
        schedule: Entries | None = None,
        *,
        fallback_version: int = 0,
    ) -> "KernelKey":
        """Return the key of the kernel of `family` for `group`; None is the fallback of the
        backend."""
        name = "fallback" if family is None else NAMES_IN_KEYS.get(family.name, family.name)
        version = fallback_version if family is None else family.version
        packages = tuple(map(distribution_version, sorted({*_packages(group, family)} - _OWN)))
        return KernelKey(key, name, version, schedule, packages)

    @property
    def digest(self) -> str:
        """Digest of all fields, and of the versions of braid and of the code generators."""
        schedule: Mapping[str, Any] | None = None if self.schedule is None else {**self.schedule}
        parts = (
            self.group.text,
            f"{self.family} {self.version}",
            json.dumps(schedule, sort_keys=True),
            *self.packages,
            braid_version(),
            *toolchain(),
        )
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def record_key(
    group: FusedOp, choice: LayoutChoice, maker: KernelFamily | None, body: str | None = None
) -> str:
    """Return the digest of what a measurement is of: the kernel that `maker` makes here.

    The layouts in the types of `group` do not count. `body` is its canonical text where that is
    known.
    """
    key = GroupKey.of(stored_text(group, choice, body), cpu_machine(NATIVE))
    return KernelKey.of(group, key, maker).digest


def schedule_key(group: FusedOp, machine: Machine) -> str:
    """Return the digest of the `GroupKey` of `group` as if its tensors were on their own."""
    return choice_key(group, stored_choice(group), machine)


def choice_key(group: FusedOp, choice: LayoutChoice, machine: Machine) -> str:
    """Return the `schedule_key` of `group` in the layouts of `choice`."""
    return choice_digest(group, choice, machine_text(machine))


def choice_digest(
    group: FusedOp, choice: LayoutChoice, machine: str, body: str | None = None
) -> str:
    """Return `choice_key` by the text of the machine, and the canonical one of the group if
    known.
    """
    text = GroupKey(stored_text(group, dense_choice(choice), body), machine).text
    return hashlib.sha256(text.encode()).hexdigest()


def dense_choice(choice: LayoutChoice) -> LayoutChoice:
    """Return the same layouts, of tensors on their own."""
    return LayoutChoice(
        tuple(layout.with_strides(None) for layout in choice.operands),
        tuple(layout.with_strides(None) for layout in choice.results),
    )


def _packages(group: FusedOp, family: KernelFamily | None) -> Iterator[str]:
    for part in (family, *group.walk()):
        yield type(part).__module__.partition(".")[0]


def _layout_text(layout: Layout) -> str:
    return layout.tag if layout.strides is None else f"{layout.tag} {layout.strides}"


class _CanonicalPrinter(Printer):
    """Prints types without layouts, values by numbers, and no attributes of passes."""

    def print_ssa_value(self, value: SSAValue) -> str:
        name = self._ssa_values.get(value)
        if name is None:
            name = self._ssa_values[value] = str(len(self._ssa_values))
        self.print_string(f"%{name}")
        return name

    def print_attribute(self, attribute: Attribute) -> None:
        if isinstance(attribute, TensorType):
            self.print_string(_type_text(cast(TensorType[Any], attribute)))
        else:
            super().print_attribute(attribute)

    def print_op_attributes(self, attributes: Mapping[str, Attribute], **options: Any) -> bool:
        kept = {key: value for key, value in attributes.items() if not key.startswith(_NOTES)}
        return super().print_op_attributes(kept, **options)


@lru_cache(maxsize=1 << 14)
def _type_text(tensor: TensorType[Any]) -> str:
    if not isinstance(tensor.encoding, NoneAttr):
        tensor = with_layout(tensor, Layout.row_major(tensor.get_num_dims()))
    return str(tensor)
