"""The versions of the domains of ops that a model, or a function of it, uses."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import onnx
from onnx import NodeProto, OperatorSetIdProto

from braid.support.errors import BraidError, SourceLocation, UnsupportedError

_NO_VERSION = 2**31
"""Versions are 32-bit numbers in ONNX's schemas."""


@dataclass(frozen=True)
class Opsets:
    """Versions by domain; the default domain is `""`."""

    versions: Mapping[str, int]

    def of(self, domain: str) -> int:
        """Return the version of a domain; 1 for one that nothing imports."""
        return self.versions.get(domain, 1)

    @property
    def default(self) -> int:
        """The version of the default domain."""
        return self.versions[""]


def imported_opsets(
    entries: Iterable[OperatorSetIdProto], location: SourceLocation, outer: Opsets | None = None
) -> Opsets:
    """Return the versions that a model or a function imports; `outer` has those that it does not.

    Raises:
        BraidError: a version is no version.
        UnsupportedError: the installed onnx package does not know the version of its own ops.

    """
    newest = onnx.defs.onnx_opset_version()
    versions = dict(outer.versions) if outer else {"": newest}
    for entry in entries:
        if not 0 <= entry.version < _NO_VERSION:
            raise BraidError(
                f"not an ONNX model: domain '{entry.domain}' has version {entry.version}",
                location=location,
            )
        versions[domain_name(entry.domain)] = entry.version
    if not 1 <= versions[""] <= newest:
        raise UnsupportedError(
            f"the model uses opset {versions['']}, expected 1 to {newest}",
            location=location,
            hint="install a newer onnx package",
        )
    return Opsets(versions)


def domain_name(name: str) -> str:
    """Return a domain's name; the default one has two."""
    return "" if name == "ai.onnx" else name


def domain_of(node: NodeProto) -> str:
    """Return the domain of a node's op."""
    return domain_name(node.domain)
