"""Node data for Google's Model Explorer: the time of each of the model's ops, as a colour.

The format is that of its `GraphNodeData`: values and colours by the name of a node, or of a tensor
that it writes.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from braid.tools.explain.kernel_rows import KernelRow
from braid.tools.explain.model_names import nearest

_GRADIENT = ({"stop": 0, "bgColor": "#ffffff"}, {"stop": 1, "bgColor": "#d9601a"})
_MICROSECONDS = 1e6


def node_data(rows: Sequence[KernelRow], names: Sequence[str], nodes: Mapping[str, str]) -> bytes:
    """Return a file with the microseconds of ops in one run.

    A kernel's time is shown at its most expensive op, and 0 at its other ops, so that the values
    add up to those of kernels. `names` are those of ops as they were read, and `nodes` has the
    names of their nodes in the model's file where these are others.
    """
    known, times = set(names), dict.fromkeys(names, 0.0)
    for row in rows:
        name = nearest(row.main or row.name, known)
        if name in times:
            times[name] += row.time * _MICROSECONDS
    results = {
        key: {"value": round(value, 3)}
        for name, value in times.items()
        for key in dict.fromkeys((name, nodes.get(name, name)))
    }
    return json.dumps({"results": results, "gradient": _GRADIENT}, indent=1).encode()


def node_names(model: Path) -> dict[str, str]:
    """Return the names of an ONNX file's nodes by the tensors that they write.

    The result is empty for files of other formats.
    """
    if model.suffix.lower() != ".onnx":
        return {}
    from braid.frontends.onnx.model_file import ModelFile

    graph = ModelFile(model).proto.graph
    return {
        output: node.name or f"<node_{number}>"
        for number, node in enumerate(graph.node)
        for output in node.output
    }
