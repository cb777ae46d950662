"""Tables about CPUs."""

from collections.abc import Iterable
from typing import Any

from benchmarks.report.results import (
    MODELS,
    best_peer,
    by_model,
    mean,
    microseconds,
    milliseconds,
    number,
    read,
    table,
    times,
    title,
)

TYPES = ("f16", "bf16", "int8")
KINDS = {
    "scores": "scores of a query and cached keys",
    "decode": "attention over cached keys and values",
    "append": "the same with a cache that grows",
    "append_op": "the same by ONNX's `Attention`",
    "layer": "a layer with projections and rotary positions",
    "row": "one row times a weight",
}
DECODERS = {
    "": "like GPT-2, f32",
    "_float16": "like GPT-2, f16",
    "_int8": "like GPT-2, int8",
    "_t5": "like T5, f32",
    "_whisper": "like Whisper, f32",
}
"""The names of decoders in tables, by the ends of the names of their files."""


def speedups(name: str) -> dict[str, float]:
    """Return by model how many times as fast braid is as the better peer."""
    found = by_model(read(name)["results"])
    peers = {model: best_peer(runtimes) for model, runtimes in found.items()}
    return {m: peer / found[m]["braid"]["median"] for m, peer in peers.items() if peer is not None}


def models(name: str = "models") -> str:
    """Whole models in f32 beside both peers."""
    found = by_model(read(name)["results"])
    fast = speedups(name)
    order = [*(m for m in MODELS if m in found), *(m for m in found if m not in MODELS)]
    rows = [
        [
            title(model),
            milliseconds(found[model]["braid"]["median"]),
            milliseconds(found[model]["ort"]["median"]),
            milliseconds(found[model]["openvino"]["median"]),
            times(fast[model]),
            f"{found[model]['braid']['details']['warm_compile_seconds']:.1f}",
            f"{found[model]['braid']['error']:.0e}",
        ]
        for model in order
    ]
    rows.append(["geometric mean", "", "", "", times(mean(fast.values())), "", ""])
    header = "model", "braid, ms", "ONNX Runtime, ms", "OpenVINO, ms", "faster by"
    return table([*header, "compile, s", "largest error"], rows)


def peers_alone() -> str:
    """Return the mean ratio of the models to each peer, on one thread and on two."""
    rows: list[list[str]] = []
    for name, threads in (("models", "1"), ("models_2_threads", "2")):
        found = by_model(read(name)["results"])
        ratios = {
            peer: mean(r[peer]["median"] / r["braid"]["median"] for r in found.values())
            for peer in ("ort", "openvino")
        }
        better = mean(speedups(name).values())
        rows.append([threads, times(ratios["ort"]), times(ratios["openvino"]), times(better)])
    return table(["threads", "ONNX Runtime", "OpenVINO", "the better one for each model"], rows)


def _typed(results: Iterable[dict[str, Any]]) -> dict[tuple[str, str], dict[str, dict[str, Any]]]:
    """Return records by model and type."""
    found: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for name, runtimes in by_model(results).items():
        model, _, kind = name.rpartition("_")
        found[model, kind] = runtimes
    return found


def types(name: str) -> str:
    """Models in other types than f32: milliseconds, and beside peers and braid's own f32."""
    found = _typed(read(name)["results"])
    rows: list[list[str]] = []
    for model, kind in found:
        runtimes = found[model, kind]
        braid, peer = runtimes["braid"]["median"], best_peer(runtimes)
        own = runtimes.get("braid-f32", {}).get("median")
        beside = "" if peer is None else times(peer / braid)
        gain = "" if own is None else times(own / braid)
        rows.append([title(model), kind, milliseconds(braid), beside, gain])
    header = "model", "type", "braid, ms", "faster than the better peer", "faster than f32"
    return table(header, sorted(rows, key=lambda row: (row[0], TYPES.index(row[1]))))


def attention_patterns() -> str:
    """Random attentions by where queries, keys and values come from."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for each in read("attention_patterns")["results"]:
        groups.setdefault(each["name"].split("-")[0], []).append(each)
    every = [each for group in groups.values() for each in group]
    rows = [
        [
            name,
            str(len(group)),
            times(1 / mean(each["by_ort"] for each in group)),
            times(1 / max(each["by_ort"] for each in group)),
            times(1 / max(each["by_parts"] for each in group)),
        ]
        for name, group in [*sorted(groups.items()), ("all", every)]
    ]
    header = (
        "q, k and v",
        "attentions",
        "than ONNX Runtime",
        "at least",
        "than without fusion, at least",
    )
    return table(header, rows)


def decoding() -> str:
    """Return a table of the speedup over the best peer of decoding a token, by kind and type."""
    found: dict[str, dict[str, list[float]]] = {}
    for name, runtimes in by_model(read("decoding")["results"]).items():
        kind, _, rest = name.partition("_")
        if kind == "append" and rest.startswith("op_"):
            kind = "append_op"
        type_ = next((each for each in TYPES if name.endswith(f"_{each}")), "f32")
        if (peer := best_peer(runtimes, "minimum")) is not None:
            ratio = peer / runtimes["braid"]["minimum"]
            found.setdefault(kind, {}).setdefault(type_, []).append(ratio)
    columns = ("f32", *TYPES)
    rows = [
        [text, *(times(mean(found[kind][t])) if t in found[kind] else "" for t in columns)]
        for kind, text in KINDS.items()
    ]
    return table(["model", *columns], rows)


def kernels(name: str = "kernels") -> str:
    """Kernels of each family beside oneDNN."""
    groups: dict[str, list[tuple[float, str]]] = {}
    for each in read(name)["results"]:
        seconds = each["seconds"]
        family, _, _ = each["name"].rpartition(" ")
        family = each["name"].split(" ")[0] if "conv" in each["name"] else family
        if "onednn" in seconds and "layout" not in each["name"]:
            ratio = seconds["onednn"] / seconds["braid"]
            groups.setdefault(family, []).append((ratio, each["name"].removeprefix(family).strip()))
    rows = [
        [
            f"`{family}`",
            str(len(found)),
            times(mean(ratio for ratio, _ in found)),
            times(min(found)[0]),
            min(found)[1],
        ]
        for family, found in groups.items()
    ]
    return table(["kernels", "shapes", "faster than oneDNN", "at least", "for"], rows)


def operators() -> str:
    """Models of a single operator: all, and those that are slower than the better peer."""
    fast = speedups("operators")
    slow = sorted((ratio, name) for name, ratio in fast.items() if ratio < 0.95)
    found = by_model(read("operators")["results"])
    rows = [[f"all {len(fast)}, geometric mean", "", times(mean(fast.values()))]]
    rows += [
        [f"`{name}`", microseconds(found[name]["braid"]["median"]), times(ratio)]
        for ratio, name in slow
    ]
    return table(["operator", "braid, µs", "faster than the better peer"], rows)


def fourier() -> str:
    """Fourier transforms by their length, beside both peers."""
    found = read("fourier")["results"]
    by_case = {(each["kind"], each["batch"], each["length"]): each["seconds"] for each in found}
    kinds = [(kind, batch) for kind in ("complex", "real") for batch in (1, 32)]
    rows = [
        [f"{length:,}"]
        + [
            f"{microseconds(seconds['braid'])} ({times(seconds['scipy'] / seconds['braid'])}, "
            f"{times(seconds['onnxruntime'] / seconds['braid'])})"
            for kind, batch in kinds
            for seconds in [by_case[kind, batch, length]]
        ]
        for length in sorted({length for _, _, length in by_case})
    ]
    header = [f"{kind}, {batch}" for kind, batch in kinds]
    return table(["points", *header], rows)


def decoders() -> str:
    """Return steps of decoders beside ONNX Runtime."""
    rows: list[list[str]] = []
    for file, name in DECODERS.items():
        found = read(f"decoder_steps{file}")
        ratios = [times(1 / row["ratio"]) for row in found["rows"]]
        rows.append([name, str(found["equal_tokens"]), *ratios])
    lengths = [f"after {row['past']:,}" for row in read("decoder_steps")["rows"]]
    return table(["decoder", "equal tokens", *lengths], rows)


def open_models() -> str:
    """Models with open dims, beside static artifacts and ONNX Runtime."""
    rows: list[list[str]] = []
    static: list[float] = []
    ort: list[float] = []
    for model in read("open_models")["models"]:
        own = [row["static"] / row["open"] for row in model["rows"] if row.get("static")]
        peers = [row["ort"] / row["open"] for row in model["rows"]]
        static += own
        ort += peers
        rows.append(
            [
                model["model"].replace("_", " "),
                str(len(peers)),
                times(mean(own)),
                times(mean(peers)),
                times(min(peers)),
                f"{model['compilation']['artifact_bytes'] / model['model_bytes']:.2f}",
                number(model["compilation"]["load_seconds"] * 1e3, 2),
            ]
        )
    rows.append(
        ["all", str(len(ort)), times(mean(static)), times(mean(ort)), times(min(ort)), "", ""]
    )
    header = "model", "sizes", "faster than static", "than ONNX Runtime", "at least"
    return table([*header, "artifact ÷ model", "load, ms"], rows)


def data_sizes() -> str:
    """Return models whose data decide sizes, beside ONNX Runtime."""
    found = read("data_sizes")
    rows: list[list[str]] = []
    for name, ratio in found["ratios"].items():
        own = [row for row in found["rows"] if row["model"] == name]
        slowest = max(row["braid"] / row["onnxruntime"] for row in own)
        milliseconds = [number(1e3 * pick(row["braid"] for row in own), 1) for pick in (min, max)]
        error = max(row["error"] for row in own)
        span = " to ".join(milliseconds)
        rows.append(
            [name, str(len(own)), span, times(1 / ratio), times(1 / slowest), f"{error:.0e}"]
        )
    header = "model", "inputs", "ms", "than ONNX Runtime", "at least", "largest error"
    return table([*header], rows)


def sessions() -> str:
    """Programs for ONNX Runtime, with `braid.onnxruntime` in its place."""
    found = read("sessions")["programs"]
    rows = [
        [
            each["program"].replace("_", " "),
            times(each["ort_cpu"] / each["braid_cpu"]),
            times(each["ort"] / each["braid"]),
            number(each["braid_begin"], 2),
            number(each["braid_begin_again"], 2),
        ]
        for each in found
    ]
    means = [
        mean(e["ort_cpu"] / e["braid_cpu"] for e in found),
        mean(e["ort"] / e["braid"] for e in found),
    ]
    rows.append(["geometric mean", *map(times, means), "", ""])
    header = "program", "less CPU time by", "faster by", "first session, s", "later ones, s"
    return table(header, rows)


def compile_time() -> str:
    """CPU seconds of compiling in a fresh process."""
    rows = [
        [title(each["model"]), *(f"{_median(each[key]):.2f}" for key in ("cold", "warm", "again"))]
        for each in read("compile_time")["measured"]
    ]
    return table(["model", "nothing cached", "kernels cached", "the model cached"], rows)


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def tuning() -> str:
    """Return a table of the results of `braid tune` on whole models."""
    rows = [
        [
            title(each["model"]),
            str(each["kernels searched"]),
            str(each["faster"]),
            times(each["gain"]),
            ", ".join(f"{space['default by best']:.2f}" for space in each["whole spaces"]),
        ]
        for each in read("tuning")["models"]
    ]
    header = "model", "kernels searched", "faster schedules kept", "model faster by"
    return table([*header, "default ÷ best of the whole space, five kernels"], rows)


def search() -> str:
    """Return evaluations until a schedule within 5 % of the optimum is found."""
    rows = [
        [
            space,
            *(number(found[how]["mean"]) for how in ("model", "genetic", "annealing", "random")),
        ]
        for space, found in read("autotuning").items()
    ]
    return table(["space", "braid's model", "genetic", "annealing", "random"], rows)
