"""Buffers that a bufferized kernel makes for itself."""

import pytest
from xdsl.parser import Parser

from braid.lowering.cpu.fallback.buffers import finish_buffers
from braid.support.errors import UnsupportedError
from braid.universe import make_context

TEXT = """
func.func @kernel(%x: memref<8xf32>, %y: memref<8xf32>, %begin: index, %end: index) {
  %one = memref.alloc(SIZE) : memref<EXTENTxf32>
  %other = memref.alloc() : memref<3xf32>
  "test.use"(%one, %other) : (memref<EXTENTxf32>, memref<3xf32>) -> ()
  func.return
}
"""


def finish(size: str, extent: str):
    context = make_context()
    context.allow_unregistered = True
    text = TEXT.replace("SIZE", size).replace("EXTENT", extent)
    return finish_buffers("kernel", Parser(context, text).parse_module(), operands=1)


def test_buffers_begin_at_cache_lines_of_one_scratch_memory() -> None:
    kernel = finish("", "17")
    assert kernel.scratch_bytes == 128 + 64
    assert "memref<192xi8>" in str(kernel.module)


def test_a_buffer_of_open_size_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="needs a buffer of open size, memref<\\?xf32>"):
        finish("%end", "?")
