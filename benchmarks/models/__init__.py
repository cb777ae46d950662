"""ONNX models of public packages with seeded random weights.

`python -m benchmarks.models.make DIRECTORY [NAME…]` writes them. Those of `light`,
`darts`, `control_flow` and `hand_written` need only the `onnx` package, the others the extra
`bench`.
"""
