"""ONNX Runtime's enumerations of memory, devices and formats, with its numbers."""

from enum import Enum, IntEnum


class NamedNumber(IntEnum):
    """A number whose text is its name, as that of ONNX Runtime's enumerations."""

    def __str__(self) -> str:
        """Return the class and the name."""
        return Enum.__str__(self)

    def __format__(self, format_spec: str, /) -> str:
        """Return the text in a format of texts."""
        return format(str(self), format_spec)


class OrtAllocatorType(NamedNumber):
    """Who gives memory: an allocator of the device, or an arena above it."""

    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(NamedNumber):
    """The device whose memory it is: a GPU, or the CPU."""

    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = -1
    DEFAULT = 0


class OrtDeviceMemoryType(NamedNumber):
    """The kind of a device's memory: whether the CPU reaches it."""

    DEFAULT = 0
    HOST_ACCESSIBLE = 5


class OrtMemoryInfoDeviceType(NamedNumber):
    """Kinds of devices, where memory is described."""

    CPU = 0
    GPU = 1
    FPGA = 2
    NPU = 3


class OrtHardwareDeviceType(NamedNumber):
    """Kinds of devices, where devices are listed."""

    CPU = 0
    GPU = 1
    NPU = 2


class OrtDeviceVendorId(IntEnum):
    """Who makes a device, by PCI's numbers."""

    NONE = 0
    AMD = 0x1002
    NVIDIA = 0x10DE
    ARM = 0x13B5
    MICROSOFT = 0x1414
    HUAWEI = 0x19E5
    QUALCOMM = 0x5143
    INTEL = 0x8086


class OrtExecutionProviderDevicePolicy(NamedNumber):
    """The device that a session prefers; braid compiles for the target that its options name."""

    DEFAULT = 0
    PREFER_CPU = 1
    PREFER_NPU = 2
    PREFER_GPU = 3
    MAX_PERFORMANCE = 4
    MAX_EFFICIENCY = 5
    MIN_OVERALL_POWER = 6


class OrtSparseFormat(NamedNumber):
    """Formats of sparse tensors, which braid does not have."""

    ORT_SPARSE_UNDEFINED = 0
    ORT_SPARSE_COO = 1
    ORT_SPARSE_CSRC = 2
    ORT_SPARSE_BLOCK_SPARSE = 4


class OrtCompileApiFlags(NamedNumber):
    """Compatibility values of ONNX Runtime's `ModelCompiler`; braid has none."""

    NONE = 0
    ERROR_IF_NO_NODES_COMPILED = 1
    ERROR_IF_OUTPUT_FILE_EXISTS = 2
