"""Tables and figures of `docs/benchmarks/`, made from `benchmarks/results/*.json`."""
