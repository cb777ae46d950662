"""Classes of models, and the spaces that are searched first for each, as data beside this file."""

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp

from braid.analysis.structure.operation_counts import flops
from braid.dialects.braid.convolution import ConvOp
from braid.dialects.braid.matmul import MatmulOp
from braid.dialects.braid.normalization import SoftmaxOp
from braid.dialects.braid.variants import program_functions
from braid.support.errors import BraidError, did_you_mean
from braid.tuning.space_files import FamilySpace, read_space

_SPACES = Path(__file__).parent / "model_spaces"
_SOFTMAX_FOR_PRODUCTS = 16
"""A model of attention has a softmax for this many products at least."""


class ModelClass(StrEnum):
    """The class of a model, by which kernels take its time."""

    CNN = "cnn"
    TRANSFORMER = "transformer"
    RNN = "rnn"
    MLP = "mlp"


AUTO = "auto"
CLASSES: Sequence[str] = (*ModelClass, AUTO)


def class_of(module: ModuleOp, name: str = AUTO) -> ModelClass:
    """Return the class of this name; `auto` is that of the module, by its ops.

    Convolutions with most of the arithmetic make a CNN. Otherwise products in loops make an RNN,
    products with softmax a transformer, and other products an MLP. Raises BraidError for another
    name.
    """
    if name not in CLASSES:
        raise BraidError(
            f"there is no class of models '{name}', expected one of {', '.join(CLASSES)}",
            hint=did_you_mean(name, CLASSES),
        )
    return _by_ops(module) if name == AUTO else ModelClass(name)


def first_space(model_class: ModelClass) -> tuple[FamilySpace, ...]:
    """Return the schedules to search first for models of a class, besides the coarsest level of
    each family.
    """
    return read_space(_SPACES / f"{model_class}.toml")


def _by_ops(module: ModuleOp) -> ModelClass:
    work: Counter[type] = Counter()
    counts: Counter[type] = Counter()
    in_loops = 0
    for function in program_functions(module):
        for op in function.walk():
            if isinstance(op, ConvOp | MatmulOp):
                own = max(flops(op), 1)
                work[type(op)] += own
                counts[type(op)] += 1
                in_loops += own if _is_in_loop(op) else 0
            counts[SoftmaxOp] += isinstance(op, SoftmaxOp)
    if work[ConvOp] > work[MatmulOp]:
        return ModelClass.CNN
    if 2 * in_loops > work[MatmulOp]:
        return ModelClass.RNN
    if counts[SoftmaxOp] * _SOFTMAX_FOR_PRODUCTS > counts[MatmulOp]:
        return ModelClass.TRANSFORMER
    return ModelClass.MLP


def _is_in_loop(op: ConvOp | MatmulOp) -> bool:
    above = op.parent_op()
    while above is not None and not isinstance(above, scf.ForOp | scf.WhileOp):
        above = above.parent_op()
    return above is not None
