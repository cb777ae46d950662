"""A machine as code generation sees it: LLVM's names for it, and facts that kernels ask."""

from dataclasses import dataclass

from braid.support.errors import BraidError


@dataclass(frozen=True)
class Machine:
    """A machine that code is made for: a model of a CPU, a GPU's architecture, the part of an FPGA.

    `triple`, `cpu` and `features` (`+avx2,-sse4a,…`) are in LLVM's spelling and empty where LLVM
    makes no code. `facts` are figures by name that kernels and costs ask for, in bytes and per
    second, sorted by name; which ones there are is between a backend and its machines. CPUs have

    - `vector_bytes` and `vector_registers`: width and number of the registers of vectors;
    - `fma`: 1 where a multiply-add is one instruction, else 0;
    - `bf16_dot`: multiply-adds of f32 that take as long as an instruction that multiplies pairs of
      bf16, where there is one;
    - `flops`: of one core, in f32;
    - `cache_bytes` of a core's own cache, `last_cache_bytes` of its part of the last one;
    - `cached_bandwidth` and `memory_bandwidth`: bytes per second within and beyond these;
    - `launch_seconds` of starting a kernel, `join_seconds` of joining threads, and
      `thread_efficiency`, the part of a thread that each one but the first adds.

    GPUs have `multiprocessors`, `memory_bandwidth`, `flops` in f32 without tensor cores, and rates
    of these: `tensor_bf16_flops`, `tensor_tf32_flops`, `tensor_int8_ops`, and where `mma.sync` is
    slower than another instruction, `mma_bf16_flops` and so on for it.

    An FPGA has the `part`, its package and speed grade in the spelling of its vendor's tools.

    Further facts that `braid targets calibrate` measures are in `calibration.py`.
    """

    name: str
    triple: str = ""
    cpu: str = ""
    features: str = ""
    facts: tuple[tuple[str, float], ...] = ()
    part: str = ""

    @property
    def enabled_features(self) -> tuple[str, ...]:
        """Names of the features that code for this machine may use, sorted."""
        return tuple(sorted(f[1:] for f in self.features.split(",") if f.startswith("+")))

    @property
    def architecture(self) -> str:
        """The first part of the triple, such as `x86_64`."""
        return self.triple.partition("-")[0]

    def fact(self, name: str, default: float | None = None) -> float:
        """Return the fact of this name. Raises `BraidError` without it and a default."""
        for key, value in self.facts:
            if key == name:
                return value
        if default is None:
            known = [key for key, _ in self.facts]
            raise BraidError(
                f"machine '{self.name}' has no fact '{name}', only {known}",
                hint="a [[machine]] of the target's file gives facts",
            )
        return default
