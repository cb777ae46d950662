"""The opset versions that a model, or one of its functions, imports."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import onnx
from onnx import NodeProto, OperatorSetIdProto

from braid.support.errors import BraidError, SourceLocation, UnsupportedError

MICROSOFT = "com.microsoft"
"""The domain of ONNX Runtime's own ops."""

_VERSION_END = 2**31
"""The end of the range of versions, which are 32-bit integers in ONNX's schemas."""


@dataclass(frozen=True)
class Opsets:
    """The imported versions by domain; the default domain is `""`."""

    versions: Mapping[str, int]

    def of(self, domain: str) -> int:
        """Return the version of a domain; 1 if it is not imported."""
        return self.versions.get(domain, 1)

    @property
    def default(self) -> int:
        """Return the version of the default domain."""
        return self.versions[""]


def imported_opsets(
    entries: Iterable[OperatorSetIdProto], location: SourceLocation, outer: Opsets | None = None
) -> Opsets:
    """Return the opset versions of a model or function; `outer` has those that it does not import.

    Raises:
        BraidError: a version is out of range.
        UnsupportedError: the installed onnx package does not have the version of the default
            domain.

    """
    newest = onnx.defs.onnx_opset_version()
    versions = dict(outer.versions) if outer else {"": newest}
    for entry in entries:
        if not 0 <= entry.version < _VERSION_END:
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
    """Return the canonical name of a domain: `ai.onnx` is the default domain."""
    return "" if name == "ai.onnx" else name


def domain_of(node: NodeProto) -> str:
    """Return the canonical name of the domain of a node's op."""
    return domain_name(node.domain)
