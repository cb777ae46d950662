"""Reading reproducers, which `passes.reproducer` writes."""

from braid.frontends.mlir import ParsedFile
from braid.support.errors import BraidError


def stored_pipeline(parsed: ParsedFile, file: str) -> str:
    """The pipeline that a reproducer holds; raises `BraidError` where there is none."""
    pipeline = parsed.external_resources.get("mlir_reproducer", {}).get("pipeline")
    if not isinstance(pipeline, str):
        raise BraidError(
            f"'{file}' holds no pipeline to run",
            hint="a reproducer ends in {-# external_resources: {mlir_reproducer: {pipeline: …",
        )
    return pipeline
