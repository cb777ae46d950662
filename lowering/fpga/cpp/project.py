"""The files of a project for Vitis HLS: the design, its testbench, `hls.tcl` and a Makefile."""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from braid.dialects.braid_hls.design import DesignOp
from braid.lowering.fpga.cpp.check import check_rules
from braid.lowering.fpga.cpp.design_text import call_text, design_text, ports_of, top_name
from braid.lowering.fpga.cpp.stage_text import beat_text
from braid.lowering.fpga.cpp.weights_text import memory_content
from braid.lowering.fpga.design.streams import weights_of

RUN = "braid_hls_run"
"""`void run(const int64_t *const *in, const int64_t *beats_in, int64_t *const *out,
const int64_t *beats_out, int64_t images)`: lanes of beats, one number each."""
TESTBENCH = "testbench.cpp"
HEADERS = ("ap_int.h", "hls_stream.h")


def header(name: str) -> str:
    """Return the text of one of `HEADERS`: enough to compile and run a design without Vitis."""
    folder = files("braid.lowering.fpga.cpp") / "include"
    return (folder / name).read_text(encoding="utf-8")


def driver_text(design: DesignOp) -> str:
    """Call the design for each image, with beats from arrays and to arrays."""
    name = top_name(design)
    ports = ports_of(design)
    inputs = [port for port in ports if port[0].startswith("s")]
    lines = [
        "#include <cstdint>",
        f'#include "{name}.cpp"',
        "",
        *(memory_content(at, op) for at, op in enumerate(weights_of(design))),
        f'extern "C" void {RUN}(const int64_t *const *in, const int64_t *beats_in,',
        "    int64_t *const *out, const int64_t *beats_out, int64_t images) {",
        *(f"  hls::stream<{beat_text(kind)}> {one};" for one, kind in ports),
    ]
    for at, (one, kind) in enumerate(inputs):
        lines += [
            f"  for (int64_t b = 0; b < images * beats_in[{at}]; b++) {{",
            f"    {beat_text(kind)} beat;",
            f"    for (int i = 0; i < {kind.lanes.data}; i++)",
            f"      beat.lane[i] = in[{at}][b * {kind.lanes.data} + i];",
            f"    {one}.write(beat);",
            "  }",
        ]
    lines.append(f"  for (int64_t image = 0; image < images; image++) {call_text(design)};")
    for at, (one, kind) in enumerate(ports[len(inputs) :]):
        lines += [
            f"  for (int64_t b = 0; b < images * beats_out[{at}]; b++) {{",
            f"    const {beat_text(kind)} beat = {one}.read();",
            f"    for (int i = 0; i < {kind.lanes.data}; i++)",
            f"      out[{at}][b * {kind.lanes.data} + i] = beat.lane[i];",
            "  }",
        ]
    return "\n".join([*lines, "}", ""])


def script_text(
    name: str, part: str, clock: float, *, reorders: bool = False, testbench: bool = False
) -> str:
    """Return `hls.tcl`, which synthesizes the top function for a part; `clock` is a period in ns.

    With `reorders` the tool chooses the order of float sums, which makes them trees of adders. A
    `testbench` runs before it.
    """
    checks = (f"add_files -tb {TESTBENCH}\n", "csim_design\n") if testbench else ("", "")
    options = "config_compile -unsafe_math_optimizations\n" if reorders else ""
    return f"""open_project -reset {name}_hls
set_top {name}
add_files {name}.cpp
{checks[0]}open_solution -reset solution
set_part {part}
create_clock -period {clock}
{options}{checks[1]}csynth_design
export_design -format ip_catalog
exit
"""


def makefile_text(name: str, *, testbench: bool = False) -> str:
    """Return a Makefile: `make` synthesizes by Vitis, `make simulate` compiles the driver by the
    C++ compiler.

    A `testbench` is compiled and run, too.
    """
    compile = "$(CXX) -std=c++17 -O2 -ffp-contract=off -Wno-unknown-pragmas -I include -o $@"
    lines = [
        ".PHONY: all simulate",
        "all:",
        "\tvitis_hls -f hls.tcl",
        "",
        f"simulate: {'testbench' if testbench else f'lib{name}.so'}",
        *(["\t./testbench"] if testbench else []),
        "",
        f"lib{name}.so: {name}.cpp driver.cpp",
        f"\t{compile} -fPIC -shared driver.cpp",
    ]
    if testbench:
        files = f"{TESTBENCH} lib{name}.so"
        lines += ["", f"testbench: {files}", f"\t{compile} {files} -Wl,-rpath,'$$ORIGIN'"]
    return "\n".join([*lines, ""])


def project_texts(
    design: DesignOp, part: str, clock: float, testbench: str | None = None
) -> dict[str, str]:
    """Return all files by their names; raises BraidError for a design that breaks a rule of
    synthesis.

    `part` is as the tool spells it, `clock` its period in ns.
    """
    name, text, checks = top_name(design), design_text(design), testbench is not None
    check_rules(text)
    return {
        f"{name}.cpp": text,
        "driver.cpp": driver_text(design),
        "hls.tcl": script_text(name, part, clock, testbench=checks),
        "Makefile": makefile_text(name, testbench=checks),
        **({} if testbench is None else {TESTBENCH: testbench}),
        **{f"include/{one}": header(one) for one in HEADERS},
    }


def write_texts(texts: Mapping[str, str], folder: Path) -> None:
    """Write files into a folder, which is made."""
    for file, content in texts.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(content, encoding="utf-8")
