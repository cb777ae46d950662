"""The compiler as a function: from a model in any form to one that can be called.

An artifact in the compilation cache is loaded, without importing the compiler.
"""

from typing import TYPE_CHECKING

from braid.driver.compile import compile_or_load
from braid.driver.options import CompileOptions, takes_keywords
from braid.runtime.model import Model

if TYPE_CHECKING:
    from braid.driver.read_source import ModelSource


@takes_keywords(CompileOptions)
def compile(source: "ModelSource", options: CompileOptions) -> Model:
    """Compile a model for a target and load it into this process.

    `source` is the path of an `.onnx` or `.mlir` file, the contents of one as `bytes`, an
    `onnx.ModelProto`, or a module, which is not changed. A model for a CPU that this one cannot
    stand for, or that is not to `load`, needs no devices here, and can only be saved. With
    `profile`, `Model.profile` tells how often each op ran and for how long; `Model.kernels` tells
    how many kernels had a record.

    The artifact of a file or of bytes is kept in the user's cache
    (`$BRAID_CACHE_DIR`), and is loaded when the same model is compiled with the same options, by
    the same installation for the same machine. The file is mapped as long as the model is there,
    and must not be changed. Nothing is kept with `cache=False`, where `passes`, `kernels`,
    `untuned`, `order_seconds` or `measure_orders` are given, weights as arrays, or `emulate`, of
    models that name other files or are warned of, and where this process itself adds to the
    compiler.

    Raises:
        BraidError: the model cannot be read, is not valid, or needs an unsupported feature.
        InfeasibleError: it cannot run within the memory budget.

    """
    return compile_or_load(source, options)
