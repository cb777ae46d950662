"""Machines to emit kernels for, whatever the tests run on."""

from braid.targets.machines.cpus import NATIVE, cpu_machine

AVX512, AVX2, SSE = map(cpu_machine, ("x86-64-v4", "x86-64-v3", "x86-64"))
HOST = cpu_machine(NATIVE)
