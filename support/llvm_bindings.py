"""llvmlite's binding to LLVM; it comes without types, so it is `Any` to the type checker."""

from importlib import import_module
from typing import Any

llvm: Any = import_module("llvmlite.binding")
