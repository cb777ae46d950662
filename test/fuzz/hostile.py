"""Input that was made to hang, exhaust or confuse: `python test/fuzz/hostile.py DIR [CASE…]`.

Runs each case in this process, which a test starts, so that a signal is seen. Each ends within
`CPU_SECONDS` with status 1 and a diagnostic that says what is wrong, or is read as any other input.
"""

import contextlib
import io
import json
import os
import resource
import sys
import time
import traceback
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from onnx import AttributeProto, ModelProto, TensorProto, helper, numpy_helper

from braid.tools.braid_opt import main as braid_opt
from braid.tools.cli import main as braid

CPU_SECONDS = 10.0
WALL_SECONDS = 60.0
"""The time limit of one that waits, since other processes of the machine slow a case down, too."""
MEMORY = 24 * 2**30
F32 = TensorProto.FLOAT
HUGE = 2**40

Command = list[object]
Case = Callable[[Path], Command]
CASES: dict[str, tuple[Case, bool]] = {}
"""By name: the function that makes the files and gives the command, and whether that may
succeed."""


def case(function: Case) -> Case:
    CASES[function.__name__] = function, False
    return function


def may_work(function: Case) -> Case:
    CASES[function.__name__] = function, True
    return function


def value(name: str, shape: list[int], kind: int = F32) -> object:
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes: list, inputs=None, outputs=None, initializers=(), functions=(), opset=17):
    graph = helper.make_graph(
        nodes,
        "hostile",
        [value("x", [2, 3])] if inputs is None else inputs,
        [helper.make_tensor_value_info("y", F32, None)] if outputs is None else outputs,
        list(initializers),
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=opsets, functions=list(functions))


def written(directory: Path, proto: ModelProto | bytes) -> Command:
    path = directory / "model.onnx"
    path.write_bytes(proto if isinstance(proto, bytes) else proto.SerializeToString())
    return ["import", path, "-o", directory / "out.mlir"]


def node_case(op: str, inputs: list[str], dims: list[int], opset: int = 17, **attributes) -> Case:
    def make(directory: Path) -> Command:
        made = helper.make_node(op, inputs, ["y"], **attributes)
        constants = [
            numpy_helper.from_array(np.array(array, np.int64), name)
            for name, array in {
                "huge": [HUGE],
                "huges": [HUGE, HUGE],
                "axis": [1],
                "negative": [-(2**62)],
            }.items()
        ]
        scalars = [numpy_helper.from_array(np.int64(v), f"s{v}") for v in (0, 1, HUGE)]
        return written(
            directory,
            model([made], [value("x", dims)], initializers=constants + scalars, opset=opset),
        )

    return make


IMAGE = [1, 3, 8, 8]
for name, made in {
    "lrn": node_case("LRN", ["x"], IMAGE, size=HUGE),
    "lrn_odd": node_case("LRN", ["x"], IMAGE, size=HUGE + 1),
    "pool": node_case("MaxPool", ["x"], IMAGE, kernel_shape=[HUGE, HUGE]),
    "pool_pads": node_case(
        "AveragePool", ["x"], IMAGE, kernel_shape=[HUGE, 3], pads=[HUGE] * 4, strides=[1, 1]
    ),
    "pool_strides": node_case(
        "MaxPool", ["x"], IMAGE, kernel_shape=[2, 2], strides=[HUGE, 2**62], dilations=[HUGE, HUGE]
    ),
    "lp_pool": node_case("LpPool", ["x"], IMAGE, kernel_shape=[2, 2], p=HUGE),
    "conv_transpose": node_case(
        "ConvTranspose", ["x", "x"], [3, 3, 3, 3], strides=[HUGE, HUGE], group=HUGE
    ),
    "conv_group": node_case("Conv", ["x", "x"], [3, 3, 3, 3], group=2**62, pads=[HUGE] * 4),
    "expand": node_case("Expand", ["x", "huges"], [1, 1]),
    "tile": node_case("Tile", ["x", "huges"], [2, 3]),
    "constant_of_shape": node_case("ConstantOfShape", ["huges"], [1]),
    "range": node_case("Range", ["s0", "s1099511627776", "s1"], [1]),
    "one_hot": node_case("OneHot", ["huge", "s1099511627776", "axis"], [1]),
    "pad": node_case("Pad", ["x", "huges"], [3]),
    "reshape": node_case("Reshape", ["x", "huges"], [2, 3]),
    "space_to_depth": node_case("SpaceToDepth", ["x"], IMAGE, blocksize=HUGE),
    "depth_to_space": node_case("DepthToSpace", ["x"], IMAGE, blocksize=HUGE),
    "split": node_case("Split", ["x"], [HUGE, 1], opset=18, num_outputs=HUGE),
    "window": node_case("HannWindow", ["s1099511627776"], [1]),
    "unsqueeze": node_case("Unsqueeze", ["x", "huge"], [2]),
    "transpose": node_case("Transpose", ["x"], [2, 3], perm=[HUGE, -HUGE]),
    "concat": node_case("Concat", ["x", "x"], [2, 3], axis=HUGE),
    "gather": node_case("Gather", ["x", "huge"], [2, 3], axis=-HUGE),
    "slice": node_case("Slice", ["x", "negative", "huge", "axis", "huge"], [2, 3]),
    "random": node_case("RandomNormal", [], [1], shape=[HUGE, HUGE]),
    "eye_like": node_case("EyeLike", ["x"], [2**20, 2**20], k=-(2**62)),
    "bernoulli": node_case("Multinomial", ["x"], [2, 3], sample_size=HUGE),
    "rnn": node_case("RNN", ["x", "x", "x"], [2, 2, 2], hidden_size=HUGE),
    "dft": node_case("DFT", ["x", "s1099511627776"], [1, 8, 1], axis=1),
    "resize": node_case("Resize", ["x", "", "", "huges"], [2, 3]),
    "top_k": node_case("TopK", ["x", "huge"], [2, 3]),
    "huge_input": node_case("Relu", ["x"], [HUGE, HUGE]),
    "huge_rank": node_case("Relu", ["x"], [1] * 10_000),
    "negative_input": node_case("Relu", ["x"], [-5, 3]),
}.items():
    CASES[f"op_{name}"] = made, True


def nested_if(depth: int) -> list:
    nodes = [helper.make_node("Identity", ["x"], ["y"])]
    for level in range(depth):
        graph = helper.make_graph(nodes, "g", [], [helper.make_tensor_value_info("y", F32, [2, 3])])
        outer = helper.make_node("If", ["c"], ["y"], name=f"if{level}")
        for branch in ("then_branch", "else_branch"):
            if branch == "then_branch":
                attribute = outer.attribute.add()
                attribute.name, attribute.type = branch, AttributeProto.GRAPH
                attribute.g.CopyFrom(graph)
            else:
                flat = helper.make_graph(
                    [helper.make_node("Neg", ["x"], ["y"])], "e", [], graph.output
                )
                outer.attribute.append(helper.make_attribute(branch, flat))
        nodes = [outer]
    return nodes


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number: int, body: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(body)) + body


@case
def if_nested(directory: Path) -> Command:
    """Written field by field, since protobuf itself does not nest so deep."""
    body = field(1, field(1, b"x") + field(2, b"y") + field(4, b"Identity"))
    for _ in range(1000):
        attribute = field(1, b"then_branch") + varint(20 << 3) + varint(5) + field(6, body)
        body = field(1, field(1, b"c") + field(2, b"y") + field(4, b"If") + field(5, attribute))
    return written(directory, field(8, field(2, b"") + varint(0)) + field(7, body))


@case
def if_nested_less(directory: Path) -> Command:
    condition = value("c", [], TensorProto.BOOL)
    proto = model(nested_if(28), [value("x", [2, 3]), condition])
    return written(directory, proto)


@may_work
def if_nested_and_run(directory: Path) -> Command:
    condition = value("c", [], TensorProto.BOOL)
    written(directory, model(nested_if(24), [value("x", [2, 3]), condition]))
    return ["run", directory / "model.onnx", "--random", "--jobs", "1"]


@case
def groups_nested(directory: Path) -> Command:
    return written(directory, b"\x0b" * 100_000)


@may_work
def long_names(directory: Path) -> Command:
    name = "n" * 10_000_000
    nodes = [helper.make_node("Relu", [name], ["y"], name=name)]
    return written(directory, model(nodes, [value(name, [2, 3])]))


@case
def long_unknown_names(directory: Path) -> Command:
    name = "n" * 10_000_000
    return written(directory, model([helper.make_node(name, [name], ["y"], name=name)]))


@case
def laughs(directory: Path) -> Command:
    functions = []
    for level in range(22):
        inner = f"f{level - 1}" if level else "Relu"
        domain = "local" if level else ""
        nodes = [
            helper.make_node(inner, ["a"], ["b"], domain=domain),
            helper.make_node(inner, ["b"], ["d"], domain=domain),
        ]
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
        functions.append(helper.make_function("local", f"f{level}", ["a"], ["d"], nodes, opsets))
    nodes = [helper.make_node("f21", ["x"], ["y"], domain="local")]
    return written(directory, model(nodes, functions=functions))


@case
def call_chain(directory: Path) -> Command:
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    functions = [
        helper.make_function(
            "local",
            f"f{level}",
            ["a"],
            ["b"],
            [helper.make_node(f"f{level + 1}", ["a"], ["b"], domain="local")],
            opsets,
        )
        for level in range(20_000)
    ]
    nodes = [helper.make_node("f0", ["x"], ["y"], domain="local")]
    return written(directory, model(nodes, functions=functions))


@case
def calls_in_a_circle(directory: Path) -> Command:
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    functions = [
        helper.make_function(
            "local",
            name,
            ["a"],
            ["b"],
            [helper.make_node(other, ["a"], ["b"], domain="local")],
            opsets,
        )
        for name, other in (("f", "g"), ("g", "f"))
    ]
    nodes = [helper.make_node("f", ["x"], ["y"], domain="local")]
    return written(directory, model(nodes, functions=functions))


def external(location: str, *, dims=(4,), **entries: object) -> Case:
    def make(directory: Path) -> Command:
        (directory / "data.bin").write_bytes(bytes(16))
        (directory / "sub").mkdir(exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkfifo(directory / "pipe")
            (directory / "link").symlink_to("/etc/passwd")
            (directory / "zero").symlink_to("/dev/zero")
            (directory / "loop").symlink_to("loop")
        tensor = TensorProto(name="w", data_type=F32, data_location=TensorProto.EXTERNAL)
        tensor.dims.extend(dims)
        for key, entry in {"location": location, **entries}.items():
            tensor.external_data.add(key=key, value=str(entry))
        nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
        return written(directory, model(nodes, [value("x", [4])], initializers=[tensor]))

    return make


for name, made in {
    "pipe": external("pipe"),
    "directory": external("sub"),
    "device": external("zero"),
    "link": external("link"),
    "loop": external("loop"),
    "parent": external("../data.bin"),
    "absolute": external("/etc/passwd"),
    "zero_byte": external("data\0.bin"),
    "offset": external("data.bin", offset=2**63),
    "offset_long": external("data.bin", offset="9" * 5000),
    "offset_negative": external("data.bin", offset=-8),
    "offset_text": external("data.bin", offset="eight"),
    "length": external("data.bin", length=2**63),
    "length_negative": external("data.bin", length=-16),
    "overflow": external("data.bin", dims=(2**32, 2**32)),
    "negative": external("data.bin", dims=(-2, -2)),
    "rank": external("data.bin", dims=(1,) * 1000),
}.items():
    CASES[f"external_{name}"] = made, False


def inline(dims: list[int], data: bytes) -> Case:
    def make(directory: Path) -> Command:
        tensor = TensorProto(name="w", data_type=F32, raw_data=data)
        tensor.dims.extend(dims)
        nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
        return written(directory, model(nodes, [value("x", [4])], initializers=[tensor]))

    return make


CASES["raw_overflow"] = inline([2**32, 2**32], b""), False
CASES["raw_overflow_to_size"] = inline([2**62, 4, 4], bytes(16)), False
CASES["raw_negative"] = inline([-1, -4], bytes(16)), False
CASES["raw_rank"] = inline([1] * 1000 + [4], bytes(16)), False


@case
def claims(directory: Path) -> Command:
    return written(directory, varint(7 << 3 | 2) + varint(2**62) + b"abc")


@case
def long_varint(directory: Path) -> Command:
    return written(directory, b"\xff" * 1000)


@case
def sparse_model(directory: Path) -> Command:
    command = written(directory, varint(15 << 3 | 2) + varint(2**33))
    os.truncate(directory / "model.onnx", 2**33 + 6)
    return command


def no_file(make: Callable[[Path], None], name: str, *command: str) -> Case:
    def made(directory: Path) -> Command:
        path = directory / name
        make(path)
        good = directory / "good.onnx"
        proto = model([helper.make_node("Relu", ["x"], ["y"])])
        good.write_bytes(proto.SerializeToString())
        names = {"FILE": path, "MODEL": good, "OUT": directory / "out.mlir"}
        return [names.get(word, word.replace("FILE", str(path))) for word in command]

    return made


COMMANDS = {
    "model": ("m.onnx", "import", "FILE", "-o", "OUT"),
    "module": ("m.mlir", "import", "FILE", "-o", "OUT"),
    "artifact": ("m.braid", "run", "FILE", "--random"),
    "stream": ("m.bin", "simulate", "FILE"),
    "stream_text": ("m.txt", "simulate", "FILE"),
    "target": ("t.toml", "compile", "MODEL", "--target", "FILE", "-o", "OUT"),
    "profile": ("p.json", "compile", "MODEL", "--use-profile", "FILE", "-o", "OUT"),
    "input": ("x.npy", "run", "MODEL", "--input", "x=FILE", "--jobs", "1"),
    "opt": ("o.mlir", "opt", "FILE"),
}
for name, words in COMMANDS.items():
    for kind, made in {
        "pipe": os.mkfifo,
        "directory": Path.mkdir,
        "device": lambda path: path.symlink_to("/dev/zero"),
        "loop": lambda path: path.symlink_to(path.name),
        "noise": lambda path: path.write_bytes(bytes(range(256)) * 40),
    }.items():
        CASES[f"{kind}_{name}"] = no_file(made, *words), False


def content(name: str, data: bytes) -> Case:
    file, *words = COMMANDS[name]
    return no_file(lambda path: path.write_bytes(data), file, *words)


def npy(header: str, data: bytes = b"") -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


DEEP = 200_000
PROFILE = '{{"ops": {{"y": {{"count": {}, "seconds": 1.0}}}}}}'
MACHINES = Path(__file__).parents[2] / "targets" / "machines"
HOST, CHIP = ((MACHINES / name).read_bytes() for name in ("host.toml", "npu-small.toml"))
ATTRIBUTE = 'func.func @main() {{ "test.op"() {{a = {}}} : () -> () func.return }}'
for name, made in {
    "profile_deep": content("profile", b"[" * DEEP + b"]" * DEEP),
    "profile_deep_objects": content("profile", b'{"ops":' * DEEP + b"1" + b"}" * DEEP),
    "profile_huge_number": content("profile", PROFILE.format("9" * 400).encode()),
    "profile_long_number": content("profile", PROFILE.format("9" * 5000).encode()),
    "profile_nan": content("profile", PROFILE.format("NaN").encode()),
    "profile_infinite": content("profile", PROFILE.format("Infinity").encode()),
    "profile_field": content("profile", b"name,occurrences,total time\n" + b"x" * 2**20),
    "profile_zeros": content("profile", b"name,occurrences,total time\n\0\0\0,1,1\n"),
    "target_deep": content("target", b"name = " + b"[" * DEEP),
    "target_deep_tables": content("target", b"name = " + b"{a=" * DEEP),
    "target_deep_keys": content("target", b".".join([b"name"] * 5000) + b" = 1\n"),
    "target_deep_headers": content("target", b"[" + b".".join([b"name"] * 5000) + b"]\n"),
    "target_long_number": content("target", b"name = " + b"9" * 5000),
    "target_huge_number": content("target", CHIP.replace(b"16e9", b"9" * 400)),
    "target_nan": content("target", CHIP.replace(b"16e9", b"nan")),
    "target_infinite": content("target", CHIP.replace(b"16e9", b"inf")),
    "target_module": content("target", HOST.replace(b'name = "cpu"', b'name = "this:s"')),
    "target_plugin": content("target", HOST.replace(b'plugin = "cpu"', b'plugin = "../x.so"')),
    "target_families": content(
        "target", HOST.replace(b"priority = 100", b'priority = 100\nkernel_families = ["this:s"]')
    ),
    "input_huge": content(
        "input", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776,)}")
    ),
    "input_negative": content(
        "input", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-2, -3)}", bytes(24))
    ),
    "input_deep": content("input", npy("(" * 9000 + ")" * 9000)),
    "input_pickle": content("input", npy("{'descr': '|O', 'fortran_order': False, 'shape': ()}")),
    "opt_regions": content(
        "opt", b'"builtin.module"() ({\n' * 10_000 + b"}) : () -> ()\n" * 10_000
    ),
    "module_regions": content(
        "module", b'"builtin.module"() ({\n' * 10_000 + b"}) : () -> ()\n" * 10_000
    ),
    "opt_attributes": content("opt", ATTRIBUTE.format("[" * 10_000 + "]" * 10_000).encode()),
    "module_attributes": content("module", ATTRIBUTE.format("[" * DEEP + "]" * DEEP).encode()),
    "module_dictionaries": content(
        "module", ATTRIBUTE.format("{a = " * 10_000 + "1" + "}" * 10_000).encode()
    ),
    "module_types": content(
        "module", ATTRIBUTE.format("tuple<" * 10_000 + "i32" + ">" * 10_000).encode()
    ),
    "module_functions": content(
        "module", ATTRIBUTE.format("(" * 10_000 + "i32" + ") -> i32" * 10_000).encode()
    ),
    "module_arrows": content("module", ATTRIBUTE.format("() -> " * 10_000 + "()").encode()),
    "module_complex": content("module", ATTRIBUTE.format("complex<" * 10_000).encode()),
    "module_minus": content(
        "module", ATTRIBUTE.format("affine_map<(d0) -> (" + "-" * 20_000 + "d0)>").encode()
    ),
    "module_sum": content(
        "module", ATTRIBUTE.format("affine_map<(d0) -> (" + "d0+" * 20_000 + "d0)>").encode()
    ),
    "module_dense": content(
        "module",
        ATTRIBUTE.format("dense<" + "[" * 10_000 + "]" * 10_000 + "> : tensor<i32>").encode(),
    ),
    "module_splat": content(
        "module", ATTRIBUTE.format(f"dense<0.0> : tensor<{HUGE}x{HUGE}xf32>").encode()
    ),
    "module_shape": content(
        "module", f"func.func @main(%x: tensor<{'9' * 5000}xf32>) {{ func.return }}".encode()
    ),
    "module_negative": content("module", b"func.func @main(%x: tensor<-1xf32>) { func.return }"),
    "module_width": content("module", ATTRIBUTE.format("1 : i" + "9" * 5000).encode()),
    "opt_long_line": content("opt", b'"' + b"n" * 10_000_000 + b'"'),
    "opt_long_name": content("opt", b'"test.' + b"n" * 10_000_000 + b'"() : () -> ()'),
    "module_comments": content(
        "module", b"//" + b"-" * 5000 + b"\nfunc.func @main() { func.return }"
    ),
    "module_locations": content(
        "module",
        b'"test.op"() : () -> () loc(' + b"fused[" * 10_000 + b'"a"' + b"]" * 10_000 + b")",
    ),
    "stream_text_long": content("stream_text", b"load 0 " + b"9" * 5000),
}.items():
    CASES[name] = made, True


@case
def input_bomb(directory: Path) -> Command:
    command = content("input", b"")(directory)
    header = npy(f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({2**28},)}}")
    with zipfile.ZipFile(directory / "x.npy", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("a.npy", header + bytes(2**26))
    return command


def safetensors(header: object, data: bytes = bytes(64)) -> Case:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()

    def make(directory: Path) -> Command:
        (directory / "w.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
        path = directory / "m.mlir"
        path.write_text(
            'module attributes {braid.parameters = "w.safetensors"} {\n'
            "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
            '  %w = braid.parameter {key = "w"} : tensor<4xf32>\n'
            "  %y = braid.add %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>\n"
            "  func.return %y : tensor<4xf32>\n}}\n"
        )
        return ["run", path, "--random", "--jobs", "1", "--interpret"]

    return make


def entry(shape: object, offsets: object, dtype: object = "F32") -> dict[str, object]:
    return {"w": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}


for name, made in {
    "good": safetensors(entry([4], [0, 16])),
    "deep": safetensors(b"[" * DEEP),
    "deep_objects": safetensors(b'{"w":' * DEEP),
    "negative": safetensors(entry([-1, -4], [0, 16])),
    "fraction": safetensors(entry([4.7], [0, 16])),
    "text": safetensors(entry("4", [0, 16])),
    "overflow": safetensors(entry([2**32, 2**32], [0, 2**66])),
    "offset": safetensors(entry([4], [2**63, 2**63 + 16])),
    "rank": safetensors(entry([1] * 1000 + [4], [0, 16])),
    "dtype": safetensors(entry([4], [0, 16], ["F32"])),
    "list": safetensors([1, 2, 3]),
    "null": safetensors({"w": None}),
    "infinite": safetensors(b'{"w":{"dtype":"F32","shape":[1e999],"data_offsets":[0,16]}}'),
    "utf8": safetensors(b'{"w\xff": 1}'),
}.items():
    CASES[f"safetensors_{name}"] = made, name in ("good",)


@case
def safetensors_pipe(directory: Path) -> Command:
    command = safetensors({})(directory)
    (directory / "w.safetensors").unlink()
    os.mkfifo(directory / "w.safetensors")
    return command


@case
def safetensors_length(directory: Path) -> Command:
    command = safetensors({})(directory)
    (directory / "w.safetensors").write_bytes(b"\xff" * 64)
    return command


@case
def safetensors_outside(directory: Path) -> Command:
    command = safetensors({})(directory)
    path = directory / "m.mlir"
    path.write_text(path.read_text().replace("w.safetensors", "/etc/passwd"))
    return command


def run(name: str, directory: Path) -> str | None:
    """Return what is wrong with how a case ends, None if nothing is."""
    make, may_succeed = CASES[name]
    directory.mkdir()
    tool, *arguments = make(directory)
    out, err = io.StringIO(), io.StringIO()
    began, computed = time.monotonic(), time.process_time()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        if tool == "opt":
            status = braid_opt([str(a) for a in arguments])
        else:
            status = braid([str(a) for a in (tool, *arguments)])
    seconds = time.monotonic() - began
    said = err.getvalue()
    problems = []
    computed = time.process_time() - computed
    if computed > CPU_SECONDS or seconds > WALL_SECONDS:
        problems.append(f"{computed:.1f} s of CPU time in {seconds:.1f} s")
    if status != 0 and "error:" not in said:
        problems.append("no diagnostic")
    if status == 0 and not may_succeed:
        problems.append("it is accepted")
    if status not in (0, 1):
        problems.append(f"status {status}")
    if any(word in said for word in ("Traceback", "internal error", "crashed", "out of memory")):
        problems.append("a crash")
    if len(said) > 5000:
        problems.append(f"a diagnostic of {len(said)} characters")
    if os.environ.get("SHOW"):
        print(f"  [{status}, {seconds:.1f} s] {said[:400]}")
    return f"{', '.join(problems)}: {said[:600]}" if problems else None


def main() -> int:
    root = Path(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.environ["BRAID_CACHE_DIR"] = str(root / "cache")
    names = sys.argv[2:] or list(CASES)
    wrong = 0
    for name in names:
        print(name, flush=True)
        try:
            problem = run(name, root / name)
        except BaseException:
            problem = traceback.format_exc()
        if problem is not None:
            wrong += 1
            print(f"  WRONG {problem}", flush=True)
    print(f"{len(names)} cases, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
