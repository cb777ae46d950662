"""Let the runtime know device plugins, and let models stand in for devices that are missing."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from braid.runtime.native_abi import file_name, last_error, load_library
from braid.support.entry_points import DEVICES_GROUP, installed_paths

EMULATED: ContextVar[bool] = ContextVar("emulated", default=False)
"""Whether missing devices are emulated for models that this thread opens."""


@contextmanager
def emulating(wanted: bool) -> Generator[None]:
    """Let devices that are missing be emulated by models that this thread opens inside."""
    library = load_library()
    token = EMULATED.set(wanted)
    library.braid_device_emulate(wanted)
    try:
        yield
    finally:
        library.braid_device_emulate(False)
        EMULATED.reset(token)


def register_plugins() -> None:
    """Let the runtime know the device plugins of installed packages.

    An entry point `NAME` of the group `braid.devices` is the `Path` of a shared object that
    exports the plugin's table; see `braid/device.h`.

    Raises:
        BraidError: an entry point cannot be loaded or is not a path.

    """
    for name, path in installed_paths(DEVICES_GROUP).items():
        if load_library().braid_device_register(name.encode(), file_name(path)) != 0:
            raise last_error()
