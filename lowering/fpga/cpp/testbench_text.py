"""A testbench in C++ that checks a design by itself, in Vitis's C simulation or without Vitis."""

from collections.abc import Sequence

from braid.dialects.braid_hls.design import DesignOp, StreamType
from braid.lowering.fpga.convert.values import Array
from braid.lowering.fpga.cpp.design_text import call_text, declarations, ports_of, signature
from braid.lowering.fpga.cpp.stage_text import beat_text, indented
from braid.lowering.fpga.cpp.weights_text import memory_content
from braid.lowering.fpga.design.streams import weights_of

_IMAGES = 2
"""The second call with the same image: state that the first one left must not matter."""


def testbench_text(design: DesignOp, inputs: Sequence[Array], outputs: Sequence[Array]) -> str:
    """Return a driver that gives the design an image twice and prints `PASSED`, or what differs and
    `FAILED`.

    Arrays are [beats, lanes] of the ports, inputs first.
    """
    ports = list(zip(ports_of(design), [*inputs, *outputs], strict=True))
    given, taken = ports[: len(inputs)], ports[len(inputs) :]
    body = [line for (name, kind), array in given for line in _writes(name, kind, len(array))]
    body += [f'hls::stream<{beat_text(kind)}> {name}("{name}");' for (name, kind), _ in taken]
    body.append(f"{call_text(design)};")
    body += [line for (name, kind), array in taken for line in _compares(name, kind, len(array))]
    return "\n".join(
        [
            "#include <cstdio>",
            *declarations(design),
            f"{signature(design)};",
            "",
            *(memory_content(at, op) for at, op in enumerate(weights_of(design))),
            *(_table(name, array) for (name, _), array in ports),
            "",
            "int main() {",
            "  int errors = 0;",
            f"  for (int image = 0; image < {_IMAGES}; image++) {{",
            *indented(indented(body)),
            "  }",
            '  printf(errors ? "FAILED: %d numbers differ\\n" : "PASSED\\n", errors);',
            "  return errors != 0;",
            "}",
            "",
        ]
    )


def _table(name: str, array: Array) -> str:
    rows = ", ".join("{" + ", ".join(map(str, row)) + "}" for row in array.tolist())
    beats, lanes = array.shape
    return f"static const long long {name}_lanes[{beats}][{lanes}] = {{{rows}}};"


def _writes(name: str, kind: StreamType, beats: int) -> list[str]:
    return [
        f'hls::stream<{beat_text(kind)}> {name}("{name}");',
        f"for (int b = 0; b < {beats}; b++) {{",
        f"  {beat_text(kind)} beat;",
        f"  for (int i = 0; i < {kind.lanes.data}; i++)",
        f"    beat.lane[i] = {name}_lanes[b][i];",
        f"  {name}.write(beat);",
        "}",
    ]


def _compares(name: str, kind: StreamType, beats: int) -> list[str]:
    return [
        f"for (int b = 0; b < {beats}; b++) {{",
        f"  const {beat_text(kind)} beat = {name}.read();",
        f"  for (int i = 0; i < {kind.lanes.data}; i++) {{",
        "    const long long found = beat.lane[i];",
        f"    if (found == {name}_lanes[b][i]) continue;",
        f'    printf("{name}, beat %d, lane %d: %lld, expected %lld\\n", b, i, found,',
        f"           {name}_lanes[b][i]);",
        "    errors++;",
        "  }",
        "}",
    ]
