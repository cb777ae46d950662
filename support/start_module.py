"""The script that runs a module of braid: `start_module.py PACKAGE MODULE ARGUMENTS…`.

PACKAGE is a JSON list of the file of the package `braid` and its directories. The package is
imported from there. Its parent directory is not put on the search path, where its files would take
precedence over Python's own modules.
"""

import importlib.util
import json
import runpy
import sys

if __name__ == "__main__":
    file, *directories = json.loads(sys.argv[1])
    spec = importlib.util.spec_from_file_location(
        "braid", file, submodule_search_locations=directories
    )
    assert spec is not None and spec.loader is not None
    sys.modules["braid"] = package = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)
    sys.argv = sys.argv[2:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
