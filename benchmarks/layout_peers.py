"""Count the reorders in the graphs that other runtimes execute for a model.

``python -m benchmarks.layout_peers FILE`` prints OpenVINO's count; it needs only `openvino`, so
that another interpreter may run it. Reorders of weights, which happen once when the model is
loaded, do not count.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

_ORT_REORDERS = ("ReorderInput", "ReorderOutput")


def ort_reorders(path: Path) -> int:
    """Reorders in the graph that ONNX Runtime writes after all of its optimizations."""
    import onnx
    import onnxruntime

    options: Any = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # It warns that the graph is only for this machine.
    with tempfile.TemporaryDirectory() as directory:
        optimized = Path(directory) / "optimized.onnx"
        options.optimized_model_filepath = str(optimized)
        options.add_session_config_entry(
            "session.optimized_model_external_initializers_file_name", "weights"
        )
        onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        model = onnx.load(optimized, load_external_data=False)
    return sum(_count(graph) for graph in [model.graph])


def _count(graph: Any) -> int:
    total = 0
    for node in graph.node:
        total += node.op_type in _ORT_REORDERS
        total += sum(_count(attribute.g) for attribute in node.attribute if attribute.HasField("g"))
    return total


def openvino_reorders(path: Path) -> int:
    """Reorders in OpenVINO's runtime model, in f32 on one thread."""
    import openvino  # pyright: ignore

    config: Any = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    core: Any = openvino.Core()  # pyright: ignore
    model: Any = core.compile_model(core.read_model(str(path)), "CPU", config)
    from_inputs: set[str] = set()
    count = 0
    for op in model.get_runtime_model().get_ordered_ops():
        kind = op.get_rt_info()["layerType"].astype(str)
        sources = [
            value.get_source_output().get_node().get_friendly_name() for value in op.inputs()
        ]
        if kind == "Input" or from_inputs.intersection(sources):
            from_inputs.add(op.get_friendly_name())
            count += kind == "Reorder"
    return count


def openvino_reorders_by(python: str, path: Path) -> int | None:
    """Return the same as `openvino_reorders`, from another interpreter; None if it rejects the
    model."""
    command = [python, "-m", "benchmarks.layout_peers", str(path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    return int(run.stdout) if run.returncode == 0 else None


if __name__ == "__main__":
    print(openvino_reorders(Path(sys.argv[1])))
