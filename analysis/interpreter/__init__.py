"""The numpy interpreter of modules: the meaning of every op, and the oracle of every lowering."""

from braid.analysis.interpreter.interpret import (
    Interpretation,
    evaluate_prepare,
    interpret,
    interpret_measured,
)
from braid.analysis.interpreter.machine import Observer, Value

__all__ = [
    "Interpretation",
    "Observer",
    "Value",
    "evaluate_prepare",
    "interpret",
    "interpret_measured",
]
