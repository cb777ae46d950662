"""Importers of `ai.onnx.ml`, the ops of classical machine learning."""

from braid.frontends.onnx.ops.ml import (
    encoders,
    linear,
    maps,
    preprocessing,
    svm,
    tree_ensemble,
    tree_models,
)

__all__ = [
    "encoders",
    "linear",
    "maps",
    "preprocessing",
    "svm",
    "tree_ensemble",
    "tree_models",
]
