"""All importers of ONNX ops: braid's own, and those of installed packages."""

from functools import cache

from braid.frontends.onnx.building.registry import Importer, registered_importer, registered_ops
from braid.support.entry_points import entry_points_of
from braid.support.errors import BraidError

ENTRY_POINTS = "braid.onnx_importers"
"""Group of the entry points of other packages: modules whose importers register themselves."""


def find_importer(op_type: str, opset: int, domain: str = "") -> Importer | None:
    """Return the newest importer of the op that is not newer than `opset`, None for none.

    Raises BraidError where an installed package cannot be loaded.
    """
    _register_all()
    return registered_importer(op_type, opset, domain)


def imported_ops() -> dict[tuple[str, str], int]:
    """Return the ops that have importers, by domain and name, with the opsets they begin with."""
    _register_all()
    return registered_ops()


@cache
def _register_all() -> None:
    # Only models in ONNX need them.
    import braid.frontends.onnx.microsoft  # pyright: ignore[reportUnusedImport]
    import braid.frontends.onnx.ops  # pyright: ignore[reportUnusedImport]  # noqa: F401

    for entry in entry_points_of(ENTRY_POINTS):
        try:
            entry.load()
        except (ImportError, AttributeError) as error:
            raise BraidError(
                f"entry point '{entry.name}' of '{ENTRY_POINTS}' cannot be loaded: {error}",
                hint=f"it is '{entry.value}'; mend or uninstall the package that has it",
            ) from error
