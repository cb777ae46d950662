"""CPUs by LLVM's names: this process's, and those of `facts/cpus.toml`."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from braid.support.errors import BraidError, did_you_mean
from braid.support.option_names import option_text
from braid.support.tile_permission import may_use_tiles
from braid.targets.machines.machine import Machine

NATIVE = "native"
_PREFER_512_BIT = "-prefer-256-bit"
_FACTS = Path(__file__).parent / "facts"


@cache
def cpu_machine(text: str) -> Machine:
    """Return the CPU of this name, such as `native` or `haswell,+avxvnni,-rtm`.

    Features that it has or lacks may follow the name in LLVM's spelling, so that any CPU can be
    described by a known one and its features. Raises `BraidError` for an unknown name.
    """
    name, *changes = [part.strip() for part in text.split(",")]
    known = _native() if name == NATIVE else _known(name)
    for change in changes:
        if len(change) < 2 or change[0] not in "+-":
            raise BraidError(
                f"'{change}' of CPU '{text}' is not a feature, expected +NAME or -NAME",
                hint=f"for example {option_text('cpu', 'x86-64-v3,+avxvnni')}",
            )
    return _with_facts(known, text, changes) if changes else known


def check_cpu(text: str) -> None:
    """Raise as `cpu_machine`, without asking LLVM about the machine this process runs on."""
    if text != NATIVE:
        cpu_machine(text)


def fact_origin(machine: Machine, fact: str) -> str:
    """Return which entry of braid's own files a fact of a CPU comes from, for people.

    Empty for a CPU of a target's file.
    """
    name = machine.cpu if machine.name == NATIVE else machine.name.partition(",")[0]
    changed = "," in machine.name and fact not in _assumed()["core"]
    if name in _table() and fact in _facts(name) and not changed:
        return f"cpus.toml, {_entry_with(name, fact)}"
    vectors = _vectors(machine)
    if fact in vectors["facts"]:
        return f"vectors.toml, {vectors['name']}"
    return "vectors.toml, core" if fact in _assumed()["core"] else ""


def needed_features(machine: Machine) -> tuple[str, ...]:
    """Return names of the features that a processor must have to run code for `machine`, sorted.

    Those whose instructions code can have: LLVM selects no instruction that clears a cache line.
    """
    entry = _feature_entry(machine)
    asked = frozenset[str](entry["asked"] if entry else ())
    return tuple(name for name in machine.enabled_features if name not in asked)


def cpu_names() -> tuple[str, ...]:
    """Return the names of the CPUs that are known, sorted."""
    return tuple(sorted(_table()))


@cache
def _native() -> Machine:
    """Return the machine this process runs on, as LLVM finds it, with the facts of its model."""
    from braid.support.llvm_bindings import llvm

    name = llvm.get_host_cpu_name()
    facts: Mapping[str, float] = _facts(name) if name in _table() else {}
    triple, features = llvm.get_process_triple(), dict(llvm.get_host_cpu_features())
    if features.get("amx-tile") and not may_use_tiles():
        features |= {feature: False for feature in features if feature.startswith("amx-")}
    return _machine(NATIVE, triple, name, known_features(triple, features), facts)


def known_features(triple: str, features: Mapping[str, bool]) -> str:
    """Return `features` as LLVM reads them, without those that the runtime cannot check.

    Code that used one would be refused on the very machine that it is made on.
    """
    entry = _feature_entry(Machine("", triple))
    known = set(features) if entry is None else {*entry["selected"], *entry["asked"]}
    return ",".join(
        f"{'+' if features[name] and name in known else '-'}{name}" for name in sorted(features)
    )


@cache
def _known(name: str) -> Machine:
    if name not in _table():
        similar = did_you_mean(name, cpu_names())
        raise BraidError(
            f"there is no CPU '{name}'",
            hint=f"{similar} "
            * bool(similar := did_you_mean(name, cpu_names()))
            + f"expected {NATIVE}, or one of {', '.join(cpu_names())}; another one is given by "
            f"its features: {option_text('cpu', 'x86-64-v3,+avxvnni')}",
        )
    features = ",".join(f"+{feature}" for feature in sorted(_features(name)))
    return _machine(
        name, _inherited(name, "triple"), _table()[name].get("cpu", name), features, _facts(name)
    )


def _with_facts(known: Machine, name: str, changes: list[str]) -> Machine:
    """Return `known` with other features; its caches stay, its vectors follow from the features.

    Raises BraidError for an unknown feature, which LLVM would ignore with a warning.
    """
    changed = {change[1:]: change for change in changes}
    if entry := _feature_entry(known):
        features = {*entry["selected"], *entry["asked"]}
        for feature in (name for name in changed if name not in features):
            raise BraidError(
                f"there is no feature '{feature}' of CPU '{known.name}'",
                hint=did_you_mean(feature, features) or f"expected {', '.join(sorted(features))}",
            )
    kept = [f for f in known.features.split(",") if f[1:] not in changed and f != _PREFER_512_BIT]
    facts = {key: value for key, value in known.facts if key in _assumed()["core"]}
    return _machine(name, known.triple, known.cpu, ",".join((*kept, *changed.values())), facts)


def _machine(
    name: str, triple: str, cpu: str, features: str, facts: Mapping[str, float]
) -> Machine:
    """Return a CPU with the facts that follow from its features if `facts` has none.

    Where there is AVX-512, vectors of 512 bits are preferred: LLVM's default for several CPUs is
    256 bits, which costs a GEMM a third of its speed.
    """
    machine = Machine(name, triple, cpu, features)
    vectors = _vectors(machine)
    if "avx512f" in machine.enabled_features:
        features = f"{features},{_PREFER_512_BIT}"
    merged = {**_assumed()["core"], **vectors["facts"], **facts}
    return Machine(name, triple, cpu, features, tuple(sorted(merged.items())))


def _vectors(machine: Machine) -> Mapping[str, Any]:
    """Return the entry of the widest vectors that kernels use."""
    features, entries = set(machine.enabled_features), _assumed()["vectors"]
    known = {name for entry in entries for name in entry["architectures"]}
    architecture = machine.architecture if machine.architecture in known else None
    return next(
        entry
        for entry in entries
        if set(entry["features"]) <= features
        and (architecture in entry["architectures"] or not (architecture or entry["architectures"]))
    )


def _feature_entry(machine: Machine) -> Mapping[str, Any] | None:
    """Return what is known of the features of its architecture."""
    entries = _features_by_use()["architecture"]
    return next((entry for entry in entries if machine.architecture in entry["names"]), None)


@cache
def _features_by_use() -> Mapping[str, Any]:
    return tomllib.loads((_FACTS / "features.toml").read_text(encoding="utf-8"))


@cache
def _assumed() -> Mapping[str, Any]:
    return tomllib.loads((_FACTS / "vectors.toml").read_text(encoding="utf-8"))


@cache
def _table() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads((_FACTS / "cpus.toml").read_text(encoding="utf-8"))


def _features(name: str) -> frozenset[str]:
    entry = _table()[name]
    inherited = _features(entry["like"]) if "like" in entry else frozenset[str]()
    return inherited | frozenset(entry["adds"])


def _facts(name: str) -> Mapping[str, float]:
    entry = _table()[name]
    inherited: Mapping[str, float] = _facts(entry["like"]) if "like" in entry else {}
    return {**inherited, **entry.get("facts", {})}


def _entry_with(name: str, fact: str) -> str:
    """Return the entry that has the fact: that of `name`, or of a CPU that it resembles."""
    entry = _table()[name]
    return name if fact in entry.get("facts", {}) else _entry_with(entry["like"], fact)


def _inherited(name: str, key: str) -> Any:
    entry = _table()[name]
    return entry[key] if key in entry else _inherited(entry["like"], key)
