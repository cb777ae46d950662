"""Build the pipeline of a model: the default passes for a target, changed by the caller's
options."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from braid.dialects.braid.decided_sizes import decides_sizes
from braid.dialects.braid.state import state_of
from braid.dialects.braid.variants import public_functions
from braid.driver.memory_budget import with_thresholds
from braid.driver.options import CompileOptions
from braid.driver.untuned import UntunedPolicy
from braid.lowering.host.codegen.compiler import available_cpus
from braid.passes.infrastructure.pipeline_parser import parse_pipeline
from braid.passes.order.search_order import SearchOrderPass
from braid.passes.parameters.merge_prepared_parameters import MergePreparedParametersPass
from braid.passes.partition.assign_devices import STRATEGIES, AssignDevicesPass, Strategy
from braid.passes.preparation.prepare_backends import PrepareBackendsPass
from braid.passes.quantization.convert_qdq_to_integers import ConvertQdqToIntegersPass
from braid.passes.sizes.add_specializations import AddSpecializationsPass
from braid.support.errors import BraidError, did_you_mean
from braid.support.option_names import option_text
from braid.targets.machines.resolve import target_of
from braid.targets.machines.target import Target

GRAPH_PIPELINE = "default"
SEARCH_SECONDS = "search_seconds"


def passes_for(module: ModuleOp) -> tuple[ModulePass, ...]:
    """Return the default pipeline for this module.

    Functions of one model (variants, phases, and specializations for steps of a model with a state)
    also share their prepared parameters.
    """
    passes, functions = graph_passes(target_of(module)), public_functions(module)
    is_alone = (
        len(functions) == 1 and not decides_sizes(module) and not any(map(state_of, functions))
    )
    return passes if is_alone else (*passes, MergePreparedParametersPass())


def graph_passes(target: Target) -> tuple[ModulePass, ...]:
    """Return the default pipeline for modules of this target.

    The passes of backends are run one by one, so that a crash can be attributed to one of them.
    """
    passes: list[ModulePass] = []
    for pass_ in parse_pipeline(GRAPH_PIPELINE):
        passes += pass_.passes(target) if isinstance(pass_, PrepareBackendsPass) else [pass_]
    return tuple(passes)


def passes_within(
    options: CompileOptions, passes: Sequence[ModulePass], target: Target
) -> tuple[ModulePass, ...]:
    """Return `passes` that decide for `target` as the options say.

    Raises BraidError for options that do not fit them, the target, or each other.
    """
    streams, policy = int(options.inter_op_threads), UntunedPolicy.of(options)
    passes = with_integers(with_thresholds(passes, options.recompute), options.integers)
    passes = with_ordering(passes, options.measure_orders, streams)
    passes = with_partition(passes, options.partition, options.pin, target)
    passes = with_search(passes, options.order_seconds, options.jobs)
    passes = policy.within(passes, options.jobs, target)
    passes = with_specializations(passes, options.specialize)
    passes = with_variants(passes, options.use_profile)
    return with_profile(passes, options.use_profile, options.unseen)


def with_specializations(
    passes: Sequence[ModulePass], specialize: object
) -> tuple[ModulePass, ...]:
    """Return `passes` with code for these sizes, whose functions share their prepared parameters.

    Raises BraidError if these are not sizes by name.
    """
    example = {"batch": 1, "sequence": 128}
    given = cast("Sequence[object]", specialize) if isinstance(specialize, list | tuple) else None
    if given is None or not all(map(_are_sizes, given)):
        raise BraidError(
            f"{option_text('specialize')} is {specialize!r:.200}, expected sizes by name",
            hint=f"each entry is a mapping, such as {example}",
        )
    if not given:
        return tuple(passes)
    entries = cast("Sequence[Mapping[str, int]]", given)
    text = ";".join(",".join(f"{name}={size}" for name, size in own.items()) for own in entries)
    changed = [
        replace(pass_, sizes=text) if isinstance(pass_, AddSpecializationsPass) else pass_
        for pass_ in passes
    ]
    return _with_shared_parameters(changed)


def with_variants(
    passes: Sequence[ModulePass], profile: str | os.PathLike[str] | None
) -> tuple[ModulePass, ...]:
    """Return `passes` that add code for the sizes at which it pays, if a profile counts sizes.

    Raises BraidError where the file cannot be read.
    """
    if profile is None:
        return tuple(passes)
    from braid.analysis.profile.read_profile import read_profile

    if not read_profile(Path(profile)).sizes:
        return tuple(passes)
    from braid.passes.variants.select_variants import SelectVariantsPass

    found: list[ModulePass] = []
    for pass_ in passes:
        if isinstance(pass_, AddSpecializationsPass):
            found.append(SelectVariantsPass(os.fspath(profile)))
        found.append(pass_)
    return _with_shared_parameters(found)


def _with_shared_parameters(passes: Sequence[ModulePass]) -> tuple[ModulePass, ...]:
    """Return `passes`, after which functions of one model share their prepared parameters."""
    if any(isinstance(pass_, MergePreparedParametersPass) for pass_ in passes):
        return tuple(passes)
    return (*passes, MergePreparedParametersPass())


def _are_sizes(entry: object) -> bool:
    """Return whether an entry has sizes by name, which fit into an option of a pass."""
    return isinstance(entry, Mapping) and all(
        isinstance(name, str)
        and not {*",;="} & {*name}
        and isinstance(size, int)
        and not isinstance(size, bool)
        and 0 <= size < 1 << 60
        for name, size in cast("Mapping[object, object]", entry).items()
    )


def with_profile(
    passes: Sequence[ModulePass],
    profile: str | os.PathLike[str] | None,
    unseen: float | None = None,
) -> tuple[ModulePass, ...]:
    """Return `passes` after one that annotates the module from the file `profile`, if there is one.

    `unseen` is the least probability of a branch. Raises BraidError where it is given without a
    profile.
    """
    if profile is None:
        if unseen is not None:
            raise BraidError(
                f"{option_text('unseen')} is given without a profile",
                hint=f"give {option_text('use_profile')} too",
            )
        return tuple(passes)
    from braid.passes.profile.annotate_profile import UNSEEN, AnnotateProfilePass

    least = UNSEEN if unseen is None else unseen
    return (AnnotateProfilePass(os.fspath(profile), unseen=least), *passes)


def with_ordering(
    passes: Sequence[ModulePass], seconds: float | None, streams: int
) -> tuple[ModulePass, ...]:
    """Return `passes` with orders that are measured for `seconds`, or for several streams.

    Raises BraidError for fewer streams than 1.
    """
    if streams < 1:
        raise BraidError(f"there are {streams} inter-op threads, expected at least 1")
    if seconds is None and streams == 1:
        return tuple(passes)
    # It is looked up in the registry, as in any pipeline, since measuring passes are above the
    # driver.
    (ordering,) = parse_pipeline("assign-inter-op-streams" if seconds is None else "measure-order")
    limit = {} if seconds is None else {"time_limit": float(seconds)}
    ordering = replace(ordering, streams=streams, **limit)
    return tuple(ordering if _orders_kernels(pass_) else pass_ for pass_ in passes)


def _orders_kernels(pass_: ModulePass) -> bool:
    """Return whether `pass_` is the search for the order of kernels, not of launches."""
    return isinstance(pass_, SearchOrderPass) and not pass_.launches_only


def with_integers(passes: Sequence[ModulePass], integers: bool) -> tuple[ModulePass, ...]:
    """Return `passes`, without the one for quantized numbers unless `integers` is true."""
    return tuple(p for p in passes if integers or not isinstance(p, ConvertQdqToIntegersPass))


def with_partition(
    passes: Sequence[ModulePass],
    strategy: Strategy | None,
    pins: Sequence[str],
    target: Target,
) -> tuple[ModulePass, ...]:
    """Return `passes` that assign devices by this strategy, and keep to these pins.

    Raises BraidError where one is given, and the target has a single device or no pass assigns.
    """
    if strategy is None and not pins:
        return tuple(passes)
    if strategy is not None and strategy not in STRATEGIES:
        known = ", ".join(STRATEGIES)
        raise BraidError(
            f"{option_text('partition')} is {strategy!r}, expected one of {known}",
            hint=did_you_mean(str(strategy), STRATEGIES),
        )
    if len(target.devices) < 2:
        raise BraidError(
            f"target '{target.name}' has one device, so that there is nothing to partition by "
            f"{option_text('pin' if strategy is None else 'partition')}",
            hint=f"give a target with several ({option_text('target')})",
        )
    if not any(isinstance(pass_, AssignDevicesPass) for pass_ in passes):
        raise BraidError("a partition is asked for, and no pass is 'assign-devices'")
    chosen = {} if strategy is None else {"strategy": strategy}
    return tuple(
        replace(pass_, pin=(*pass_.pin, *pins), **chosen)
        if isinstance(pass_, AssignDevicesPass)
        else pass_
        for pass_ in passes
    )


def with_search(
    passes: Sequence[ModulePass], seconds: float | None, jobs: int | None
) -> tuple[ModulePass, ...]:
    """Return `passes`; those that search orders piece by piece do so for `seconds` each.

    They do so in `jobs` processes, by default as many as there are CPUs. Raises BraidError where
    seconds are given, and no pass searches that way.
    """
    limit = {} if seconds is None else {SEARCH_SECONDS: float(seconds)}
    options = {SEARCH_SECONDS, "jobs"}
    searching = [options <= {field.name for field in fields(p)} for p in passes]
    if seconds is not None and not any(searching):
        raise BraidError(
            "no pass searches the order of subgraphs",
            hint=f"{option_text('order_seconds')} is for targets with a chip",
        )
    return tuple(
        replace(pass_, jobs=jobs or available_cpus(), **limit) if searches else pass_
        for pass_, searches in zip(passes, searching, strict=True)
    )


def as_passes(passes: object) -> tuple[ModulePass, ...]:
    """Return passes, the text of a pipeline, or texts of its parts as passes.

    Raises:
        BraidError: it is none of these, or the pass does not exist.

    """
    if isinstance(passes, str):
        return tuple(parse_pipeline(passes))
    if not isinstance(passes, Iterable):
        raise BraidError(
            f"passes is {passes!r}, expected a sequence of passes, or text",
            hint=f"such as {option_text('passes', 'canonicalize,cse')}",
        )
    found: list[ModulePass] = []
    for part in cast(Sequence[object], passes):
        if isinstance(part, ModulePass):
            found.append(part)
        elif isinstance(part, str):
            found.extend(parse_pipeline(part))
        else:
            raise BraidError(f"passes holds {part!r}, expected passes, or their names")
    return tuple(found)
