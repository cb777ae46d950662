"""The machine that code is generated for, as LLVM names it."""

from dataclasses import dataclass
from functools import cache

from braid.support.llvm_bindings import llvm

_PREFER_512_BIT = "-prefer-256-bit"


@dataclass(frozen=True)
class TargetMachineSpec:
    """Triple, CPU and features (`+avx2,-sse4a,…`), in LLVM's spelling."""

    triple: str
    cpu: str
    features: str

    @property
    def enabled_features(self) -> tuple[str, ...]:
        """Names of the features that code for this machine may use, sorted."""
        return tuple(sorted(f[1:] for f in self.features.split(",") if f.startswith("+")))


@cache
def host_machine() -> TargetMachineSpec:
    """The machine this process runs on.

    Where there is AVX-512, vectors of 512 bits are preferred: LLVM's default for several CPUs is
    256 bits, which costs a GEMM a third of its speed.
    """
    features = llvm.get_host_cpu_features()
    text = features.flatten()
    if features.get("avx512f"):
        text = f"{text},{_PREFER_512_BIT}"
    return TargetMachineSpec(llvm.get_process_triple(), llvm.get_host_cpu_name(), text)
