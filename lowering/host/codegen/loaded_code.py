"""Object code loaded into this process."""

from collections.abc import Sequence
from itertools import count
from typing import Any

from braid.support.errors import BraidError
from braid.support.llvm_bindings import llvm

_library_numbers = count()


class LoadedCode:
    """Linked object files; their code stays loaded as long as this object lives."""

    def __init__(self, jit: Any, library: str, tracker: Any) -> None:
        self._jit = jit
        self._library = library
        self._trackers = [tracker]

    def address(self, symbol: str) -> int:
        """Return the address of an exported symbol.

        Raises BraidError if no object has it, or if its code needs a symbol that nothing defines.
        """
        try:
            tracker = self._jit.lookup(self._library, symbol)
        except RuntimeError as error:
            raise BraidError(f"generated code cannot be linked: {error}") from error
        self._trackers.append(tracker)
        return int(tracker[symbol])


def load_objects(objects: Sequence[bytes]) -> LoadedCode:
    """Link `objects` with each other and with what this process has loaded (libc, libm).

    Raises BraidError if one of them is not an object file of this machine or two of them
    define the same symbol.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # LLVM's other linker, RuntimeDyld, ends the process if an address is out of reach of a 32-bit
    # offset, as happened with PyTorch, which maps much memory.
    jit = llvm.create_lljit_compiler(use_jit_link=True)
    builder = llvm.JITLibraryBuilder()
    for object_code in objects:
        builder.add_object_img(object_code)
    builder.add_current_process()
    library = f"braid_{next(_library_numbers)}"
    try:
        tracker = builder.link(jit, library)
    except RuntimeError as error:
        raise BraidError(f"generated code cannot be linked: {error}") from error
    return LoadedCode(jit, library, tracker)
