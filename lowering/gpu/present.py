"""Ask NVIDIA's driver which GPU this machine has."""

import ctypes
import os

_MAJOR, _MINOR = 75, 76
"""CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and …_MINOR."""


def architecture_here() -> str | None:
    """Return the architecture of the first GPU, such as `sm_90`; None without a driver or a GPU.

    Children that this process forks later cannot use CUDA.
    """
    try:
        driver = ctypes.CDLL(os.environ.get("BRAID_CUDA_LIBRARY") or "libcuda.so.1")
    except OSError:
        return None
    device, values = ctypes.c_int(), (ctypes.c_int(), ctypes.c_int())
    if driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), 0):
        return None
    for value, attribute in zip(values, (_MAJOR, _MINOR), strict=True):
        if driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device):
            return None
    return f"sm_{values[0].value}{values[1].value}"
