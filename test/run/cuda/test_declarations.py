"""The declarations of the driver in braid and the stand-in, compared with NVIDIA's header if it is
installed."""

import re
import subprocess
import sysconfig
from pathlib import Path

import pytest

import braid
from test.run.cuda.conftest import SOURCES

DRIVER = Path(braid.__file__).parent / "runtime" / "native" / "src" / "cuda" / "driver.h"
NUMBERS = {
    "CUDA_MAJOR": "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR",
    "CUDA_MINOR": "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR",
    "CUDA_SHARED_OPTIN": "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    "CUDA_FUNCTION_MAX_THREADS": "CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK",
    "CUDA_FUNCTION_SHARED": "CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES",
    "CUDA_FUNCTION_DYNAMIC": "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES",
    "CUDA_STREAM_NON_BLOCKING": "CU_STREAM_NON_BLOCKING",
    "CUDA_EVENT_BLOCKING": "CU_EVENT_BLOCKING_SYNC",
    "CUDA_EVENT_NO_TIME": "CU_EVENT_DISABLE_TIMING",
    "CUDA_CAPTURE_THREAD": "CU_STREAM_CAPTURE_MODE_THREAD_LOCAL",
    "CUDA_POINTER_MEMORY": "CU_POINTER_ATTRIBUTE_MEMORY_TYPE",
    "CUDA_POINTER_ORDINAL": "CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL",
    "CUDA_MEMORY_DEVICE": "CU_MEMORYTYPE_DEVICE",
    "CUDA_JIT_ERROR_LOG": "CU_JIT_ERROR_LOG_BUFFER",
    "CUDA_JIT_ERROR_LOG_BYTES": "CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES",
}
HANDLES = (
    r"CU(?:context|module|function|stream|event|graphExec|graph)\b"
    r"|cuda_(?:context|module|function|stream|event|graph_exec|graph)\b"
)


@pytest.fixture(scope="module")
def header() -> Path:
    found = sorted(Path(sysconfig.get_path("purelib"), "nvidia").glob("*/include/cuda.h"))
    if not found:
        pytest.skip("needs NVIDIA's cuda.h")
    return found[-1]


def preprocessed(header: Path) -> str:
    command = ["cc", "-E", "-P", "-D__CUDA_API_VERSION_INTERNAL", "-"]  # older versions too
    text = f'#include "{header}"\n'
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def parameters(text: str) -> list[str]:
    """Return the kind of each parameter, as calls pass it: a pointer, or a number of so many
    bits."""
    return [_kind(one) for one in text.split(",")]


def _kind(parameter: str) -> str:
    if "*" in parameter or "[" in parameter or re.search(HANDLES, parameter):
        return "pointer"
    if re.search(r"CUdeviceptr|cuda_address|\baddress\b|size_t|long long|uint64_t", parameter):
        return "64 bits"
    return "32 bits"


def declared(text: str, symbol: str) -> list[str] | None:
    found = re.search(rf"\b{symbol}\(([^;{{]*?)\)\s*[;{{]", text, re.DOTALL)
    return None if found is None else parameters(found[1])


def test_parameters(header: Path) -> None:
    text = preprocessed(header)
    calls = re.sub(r"\\\n", " ", DRIVER.read_text())
    own = re.findall(r'X\(\w+,\s*"(\w+)",\s*\(([^()]*)\)\)', calls)
    assert len(own) > 40
    for symbol, given in own:
        assert declared(text, symbol) == parameters(given), symbol


def test_the_stand_in_has_the_same(header: Path) -> None:
    text = preprocessed(header)
    for source in SOURCES:
        code = source.read_text()
        for symbol, given in re.findall(r"^result (cu\w+)\(([^{]*)\) \{", code, re.MULTILINE):
            theirs = declared(text, symbol)
            kinds = ["pointer" if "object *" in one else _kind(one) for one in given.split(",")]
            assert kinds == theirs, symbol


def test_numbers(header: Path, tmp_path: Path) -> None:
    source = tmp_path / "numbers.c"
    checks = "\n".join(
        f'_Static_assert({own} == (int){theirs}, "{own}");' for own, theirs in NUMBERS.items()
    )
    sizes = '_Static_assert(sizeof(cuda_tensor_map) == sizeof(CUtensorMap), "map");'
    source.write_text(f'#include "{header}"\n#include "{DRIVER}"\n{checks}\n{sizes}\n')
    subprocess.run(["cc", "-std=c11", "-fsyntax-only", source], check=True)
