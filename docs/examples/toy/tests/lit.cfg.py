"""Configure lit for the .mlir tests of this directory: `lit docs/examples/toy/tests`."""

import os
import tempfile
from pathlib import Path

import lit.formats

config.name = "braid-toy"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.test_source_root = str(Path(__file__).parent)
config.test_exec_root = tempfile.mkdtemp(prefix="braid-toy-")
config.environment.update(os.environ)  # braid-opt and filecheck are found by PATH.
