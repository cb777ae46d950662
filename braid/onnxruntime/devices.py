"""Devices and their memory, as ONNX Runtime describes them, and descriptions of allocators."""

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn, cast

from braid.onnxruntime.errors import (
    NotImplementedStatus,
    WrongTypeError,
    WrongUseError,
    WrongValueError,
)
from braid.onnxruntime.numbers import (
    OrtAllocatorType,
    OrtDeviceMemoryType,
    OrtDeviceVendorId,
    OrtHardwareDeviceType,
    OrtMemoryInfoDeviceType,
    OrtMemType,
)
from braid.support import logs
from braid.support.errors import did_you_mean

_NONE, _NVIDIA = OrtDeviceVendorId.NONE, OrtDeviceVendorId.NVIDIA
_CPU, _GPU, _FPGA, _NPU = range(4)
_DEVICES: Mapping[str, tuple[int, OrtDeviceVendorId]] = {
    "cpu": (_CPU, _NONE),
    "cuda": (_GPU, _NVIDIA),
    "gpu": (_GPU, _NONE),
    "dml": (_GPU, OrtDeviceVendorId.MICROSOFT),
    "webgpu": (_GPU, _NONE),
    "npu": (_NPU, _NONE),
    "cann": (_NPU, OrtDeviceVendorId.HUAWEI),
}
_MEMORIES: Mapping[str, OrtDeviceVendorId] = {
    "Cpu": _NONE,
    "Cuda": _NVIDIA,
    "CudaPinned": _NVIDIA,
    "Hip": OrtDeviceVendorId.AMD,
    "DML": OrtDeviceVendorId.MICROSOFT,
    "WebGPU_Buffer": _NONE,
}


class OrtDevice:
    """A device: its kind, memory, vendor and number."""

    def __init__(self, device_type: int, mem_type: int, *vendor_and_id: int) -> None:
        """Describe a device by numbers: kind, memory, vendor if any, and its own; see `make`."""
        numbers = (device_type, mem_type, *vendor_and_id)
        if len(numbers) not in (3, 4) or not all(isinstance(cast(object, n), int) for n in numbers):
            raise WrongTypeError(
                f"a device is {numbers!r:.200}, expected three or four numbers",
                hint="OrtDevice.make('cpu', 0) makes one by its name",
            )
        self._type, self._memory = device_type, mem_type
        self._vendor = vendor_and_id[0] if len(vendor_and_id) == 2 else int(_NONE)
        self._id = vendor_and_id[-1]

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> "OrtDevice":
        """Return the device of this name and number. Raises ValueError for other names."""
        kind, vendor = _DEVICES[_known_device(ort_device_name)]
        return OrtDevice(kind, 0, int(vendor) if vendor_id < 0 else int(vendor_id), device_id)

    @staticmethod
    def cpu() -> int:
        """Return the number of CPUs as a kind."""
        return _CPU

    @staticmethod
    def cuda() -> int:
        """Return the number of GPUs as a kind."""
        return _GPU

    gpu = cuda

    @staticmethod
    def npu() -> int:
        """Return the number of NPUs as a kind."""
        return _NPU

    @staticmethod
    def fpga() -> int:
        """Return the number of FPGAs as a kind."""
        return _FPGA

    @staticmethod
    def default_memory() -> int:
        """Return the number of a device's own memory."""
        return int(OrtDeviceMemoryType.DEFAULT)

    def device_id(self) -> int:
        """Return the number of the device among those of its kind."""
        return self._id

    def device_type(self) -> int:
        """Return ONNX Runtime's number of the kind of device: 0 for CPUs, 1 for GPUs."""
        return self._type

    def device_mem_type(self) -> int:
        """Return the number of the kind of memory."""
        return self._memory

    def device_vendor_id(self) -> int:
        """Return PCI's number of the vendor, 0 if it is unknown."""
        return self._vendor

    mem_type = device_mem_type
    vendor_id = device_vendor_id

    def _get_c_device(self) -> "OrtDevice":
        return self  # programs hand it on to classes of the module `capi`

    @property
    def name(self) -> str:
        """The name by which values are where this device is."""
        return {_CPU: "cpu", _GPU: "cuda"}.get(self._type, "npu")


def _known_device(name: object) -> str:
    if not isinstance(name, str) or name.lower() not in _DEVICES:
        raise WrongValueError(
            f"Unsupported device type: {name!s:.100}",
            hint=f"expected one of {', '.join(_DEVICES)}",
        )
    return name.lower()


def device_name(device: object) -> str:
    """Return `cpu` or `cuda` for a device or its name. Raises ValueError for other devices."""
    name = device.name if isinstance(device, OrtDevice) else _known_device(device)
    if name not in ("cpu", "cuda", "gpu"):
        raise WrongValueError(f"values cannot be on {device!r:.100}, expected 'cpu' or 'cuda'")
    return "cpu" if name == "cpu" else "cuda"


@dataclass(frozen=True)
class OrtMemoryInfo:
    """Whose memory an input, an output or a value is in."""

    name: str
    allocator_type: OrtAllocatorType
    device_id: int
    mem_type: OrtMemType
    device_mem_type: OrtDeviceMemoryType = field(default=OrtDeviceMemoryType.DEFAULT, init=False)
    device_vendor_id: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Raise RuntimeError for memory that ONNX Runtime does not name so."""
        if self.name not in _MEMORIES:
            raise WrongUseError(
                f"Specified device is not supported. Try CreateMemoryInfo_V2: {self.name!r:.100}",
                hint=did_you_mean(self.name, _MEMORIES)
                or f"the names are {', '.join(_MEMORIES)}; OrtMemoryInfo.create_v2 takes any",
            )
        object.__setattr__(self, "device_vendor_id", int(_MEMORIES[self.name]))

    @staticmethod
    def create_v2(
        name: str,
        device_type: OrtMemoryInfoDeviceType,
        vendor_id: int,
        device_id: int,
        mem_type: OrtDeviceMemoryType,
        alignment: int,
        allocator_type: OrtAllocatorType,
    ) -> "OrtMemoryInfo":
        """Describe memory of any name."""
        made = OrtMemoryInfo("Cpu", allocator_type, device_id, OrtMemType.DEFAULT)
        for attribute, value in (
            *(("name", name), ("device_vendor_id", vendor_id)),
            ("device_mem_type", mem_type),
        ):
            object.__setattr__(made, attribute, value)
        return made


CPU_MEMORY = OrtMemoryInfo("Cpu", OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, OrtMemType.DEFAULT)
"""The memory where sessions take inputs from, and give outputs."""


@dataclass(frozen=True)
class OrtHardwareDevice:
    """A device of this machine."""

    type: OrtHardwareDeviceType
    vendor: str
    vendor_id: int
    device_id: int
    metadata: dict[str, str]


@dataclass(frozen=True)
class OrtEpDevice:
    """An execution provider on a device."""

    ep_name: str
    ep_vendor: str
    ep_metadata: dict[str, str]
    ep_options: dict[str, str]
    device: OrtHardwareDevice

    def memory_info(self, memory_type: OrtDeviceMemoryType) -> OrtMemoryInfo | None:
        """Return its memory, None for a kind that it does not have."""
        return CPU_MEMORY if memory_type is OrtDeviceMemoryType.DEFAULT else None

    def create_sync_stream(self) -> NoReturn:
        """Raise NotImplemented: a CPU has no streams."""
        raise NotImplementedStatus("OrtEpDevice.create_sync_stream: a CPU has no streams")


def get_ep_devices() -> list[OrtEpDevice]:
    """Return the one provider that sessions have: that of this machine's CPU."""
    from braid import __version__

    cpu = OrtHardwareDevice(OrtHardwareDeviceType.CPU, platform.machine(), int(_NONE), 0, {})
    return [OrtEpDevice("CPUExecutionProvider", "braid", {"version": __version__}, {}, cpu)]


class OrtArenaCfg:
    """The growth strategy of an arena; braid's sessions plan their memory, and have none."""

    _NAMES = (
        *("max_mem", "arena_extend_strategy", "initial_chunk_size_bytes"),
        *("max_dead_bytes_per_chunk", "initial_growth_chunk_size_bytes"),
        "max_power_of_two_extend_bytes",
    )

    def __init__(self, *values: object) -> None:
        """Take the first four numbers, or a mapping of names to numbers."""
        mapping = values[0] if len(values) == 1 else dict(zip(self._NAMES, values, strict=False))
        if not isinstance(mapping, Mapping) or len(values) not in (1, 4):
            raise WrongTypeError("an OrtArenaCfg is made of four numbers, or of a dict")
        given = cast("Mapping[str, int]", mapping)
        for name in given:
            if name not in self._NAMES:
                raise WrongUseError(
                    f"Invalid OrtArenaCfg option: {name}",
                    hint=did_you_mean(name, self._NAMES) or f"it has {', '.join(self._NAMES)}",
                )
        self.max_mem = given.get("max_mem", 0)
        self.arena_extend_strategy = given.get("arena_extend_strategy", -1)
        self.initial_chunk_size_bytes = given.get("initial_chunk_size_bytes", -1)
        self.max_dead_bytes_per_chunk = given.get("max_dead_bytes_per_chunk", -1)
        self.initial_growth_chunk_size_bytes = given.get("initial_growth_chunk_size_bytes", -1)
        self.max_power_of_two_extend_bytes = given.get("max_power_of_two_extend_bytes", -1)


def create_and_register_allocator(
    mem_info: OrtMemoryInfo, arena_cfg: OrtArenaCfg | None = None
) -> None:
    """Do nothing: the memory of a run is planned when its model is compiled."""
    _check_allocator(mem_info, arena_cfg)
    logs.log(logs.DEBUG, "create_and_register_allocator has no effect")


def create_and_register_allocator_v2(
    provider_type: str,
    mem_info: OrtMemoryInfo,
    options: Mapping[str, str],
    arena_cfg: OrtArenaCfg | None = None,
) -> None:
    """Do nothing, as `create_and_register_allocator`."""
    _check_allocator(mem_info, arena_cfg)
    logs.log(logs.DEBUG, "create_and_register_allocator_v2 has no effect")


def _check_allocator(mem_info: object, arena_cfg: object) -> None:
    if not isinstance(mem_info, OrtMemoryInfo):
        raise WrongTypeError(f"mem_info is {mem_info!r:.200}, expected an OrtMemoryInfo")
    if not isinstance(arena_cfg, OrtArenaCfg | None):
        raise WrongTypeError(f"arena_cfg is {arena_cfg!r:.200}, expected an OrtArenaCfg")
