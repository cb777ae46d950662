"""ONNX's backend tests, run through braid and its peers.

`python -m benchmarks.conformance` runs them and prints what passed, failed or is not supported.
`unsupported.txt` lists the cases that braid does not pass and why; it may only get shorter.
"""
