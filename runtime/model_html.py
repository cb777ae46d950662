"""A model as HTML, which notebooks show for it."""

from collections.abc import Sequence
from html import escape

from braid.runtime.buffers import describe_shape
from braid.runtime.manifest import Manifest, TensorSpec
from braid.runtime.state_order import shown_sizes

_MEBIBYTE = 1 << 20


def model_html(
    inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], manifest: Manifest | None
) -> str:
    """Return tables of the inputs and outputs, and of the manifest, if there is one.

    All text is escaped: names in a model are whatever its author chose.
    """
    sizes = () if manifest is None else shown_sizes(manifest)
    rows = "".join(_port_row("input", spec, ()) for spec in inputs)
    pairs = zip(outputs, sizes or ((),) * len(outputs), strict=True)
    rows += "".join(_port_row("output", spec, own) for spec, own in pairs)
    header = _row("th", "", "name", "type", "shape")
    tables = f"<table><thead>{header}</thead><tbody>{rows}</tbody></table>"
    title = "interpreted model" if manifest is None else manifest.model
    facts = "" if manifest is None else f"<p>{escape(', '.join(_facts(manifest)))}</p>"
    return f"<div><strong>braid.Model</strong> {escape(title)}{tables}{facts}</div>"


def _port_row(kind: str, spec: TensorSpec, sizes: Sequence[str]) -> str:
    return _row("td", kind, spec.name, spec.dtype, f"[{describe_shape(spec, sizes)}]")


def _row(cell: str, *texts: str) -> str:
    return f"<tr>{''.join(f'<{cell}>{escape(text)}</{cell}>' for text in texts)}</tr>"


def _facts(manifest: Manifest) -> list[str]:
    weights = sum(spec.nbytes for spec in manifest.weights)
    facts = [f"target {manifest.target}", f"weights {_mebibytes(weights)}"]
    if manifest.expanded_bytes:
        facts.append(f"weights made at load {_mebibytes(manifest.expanded_bytes)}")
    if manifest.arena_bytes:
        facts.append(f"memory for intermediates {_mebibytes(manifest.arena_bytes)}")
    if manifest.kernels.total:
        facts.append(str(manifest.kernels))
    return facts


def _mebibytes(size: int) -> str:
    return f"{size / _MEBIBYTE:.2f} MiB"
