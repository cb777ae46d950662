"""`select-variants`: at which of the sizes that a profile saw code of its own pays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.remarks import emit_remark
from braid.analysis.profile.read_profile import read_profile
from braid.dialects.braid.attribute_names import SPECIALIZE
from braid.dialects.braid.decided_sizes import decides_sizes
from braid.dialects.braid.sizes import assumptions_of, is_open, symbols_used
from braid.dialects.braid.variants import (
    public_functions,
    sizes_attribute,
    specialized_sizes,
)
from braid.passes.variants.variant_trial import TrialCosts, open_costs, own_costs
from braid.solvers.variants import Budget, Variant, choose_variants
from braid.support.errors import BraidError, SourceLocation
from braid.support.size_counts import SizeCount
from braid.support.sizes.assumptions import Assumed

_MOST_TRIALS = 8
"""Sizes that are tried; each trial takes the time of two decisions about the whole model."""

_LEAST_SHARE = 0.02
"""Part of all runs from which on sizes are tried."""

_LEAST_SPEEDUP = 1.15
"""Predictions of two kernels that are less than this apart do not say which is faster."""

_OTHER_MODEL = "was it taken with another model, or with other fixed dims or bounds?"

_RUN_SECONDS = 5e-6
"""The time of a run besides its kernels, about half of a call from Python of a model with one small
kernel. So predictions below a few microseconds do not decide."""

_KERNEL_BYTES, _KERNEL_SECONDS = 3 << 10, 0.13
"""The code of a kernel and the CPU time to compile it, fitted by the kernels that variants add in
`benchmarks.size_variants`."""


@dataclass(frozen=True)
class SelectVariantsPass(ModulePass):
    """Choose sizes of open dims for which code of their own is added, by how often they were run.

    Sizes that a profile saw in 2 % of the runs or more, eight at most, are tried: the layouts of
    the model are decided once for open and once for fixed dims, and the predicted seconds of both
    are compared. Candidates are at least 1.15 times as fast with fixed dims. Of these it chooses
    the variants that save most mean time over all runs, within `bytes` of code and of weights in
    other layouts, and `seconds` of compilation. Run it before `add-specializations`, which adds the
    code.

    In: a module with one public function of open sizes; other modules do not change. Out: that
    function with `braid.specialize`, and a remark with the choice and its reason, or the reason for
    none. Raises BraidError for a profile with other dims, or sizes that the model does not allow.

    ```mlir
    func.func @main(…) attributes {braid.specialize = [{batch = 1 : i64}]}
    ```
    """

    name = "select-variants"

    file: str
    bytes: int = 16 << 20
    seconds: float = 30.0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Write the sizes on the public function; raises as the class says."""
        counts = read_profile(Path(self.file)).sizes
        functions = public_functions(op)
        if not counts or len(functions) != 1 or decides_sizes(op) or not is_open(functions[0]):
            return
        (function,) = functions
        if specialized_sizes(function):
            return
        self._check(function, counts)
        runs = sum(each.count for each in counts)
        if runs == 0:
            return
        frequent = [each for each in counts if each.count - each.error >= _LEAST_SHARE * runs]
        tried = [self._tried(ctx, op, each, runs) for each in frequent[:_MOST_TRIALS]]
        faster = [each for each in tried if each.speedup >= _LEAST_SPEEDUP]
        budget = Budget(self.bytes, self.seconds)
        chosen = [faster[i] for i in choose_variants([e.variant for e in faster], budget)]
        if chosen:
            entries = [sizes_attribute(each.sizes) for each in chosen]
            function.attributes[SPECIALIZE] = ArrayAttr(entries)
        self._remark(function, tried, faster, chosen)

    def _tried(self, ctx: Context, module: ModuleOp, counted: SizeCount, runs: int) -> "_Tried":
        """Return the result of a trial. Raises BraidError where the model is impossible there."""
        share = (counted.count - counted.error) / runs
        try:
            return _Tried.of(ctx, module, dict(counted.sizes), share)
        except BraidError as error:
            raise BraidError(
                f"the profile counts runs that the model refuses: {error.message}",
                location=SourceLocation(self.file),
                hint=_OTHER_MODEL,
            ) from error

    def _check(self, function: FuncOp, counts: Sequence[SizeCount]) -> None:
        """Raise BraidError unless the function may have all of these sizes."""
        location = SourceLocation(self.file)
        used, known = symbols_used(function), assumptions_of(function).by_name
        for each in counts:
            for name, size in each.sizes:
                if name not in used:
                    raise BraidError(
                        f"the profile counts sizes of '{name}', which is no open dim of the model",
                        location=location,
                        hint=f"{_OTHER_MODEL} Its open dims are: {', '.join(sorted(used))}",
                    )
                if not known.get(name, Assumed()).allows(size):
                    raise BraidError(
                        f"the profile has {name} = {size}, which the model does not allow",
                        location=location,
                        hint=_OTHER_MODEL,
                    )
        missing = sorted(used - {name for name, _ in counts[0].sizes})
        if missing:
            raise BraidError(
                f"the profile does not count sizes of '{missing[0]}', an open dim of the model",
                location=location,
                hint=_OTHER_MODEL,
            )

    def _remark(
        self,
        function: FuncOp,
        tried: "Sequence[_Tried]",
        faster: "Sequence[_Tried]",
        chosen: "Sequence[_Tried]",
    ) -> None:
        """Report the chosen variants with the reason, or why there are none."""
        texts = ", ".join(map(str, chosen))
        if chosen:
            said = f"code of its own for {texts}"
        elif not tried:
            said = f"no code of its own: no size is in {_LEAST_SHARE:.0%} of the runs"
        elif not faster:
            best = max(tried, key=lambda each: each.speedup)
            said = f"no code of its own: at most {best}, expected {_LEAST_SPEEDUP} times"
        else:
            said = f"no code of its own: {faster[0]} exceeds the budget"
        bytes_ = int(sum(each.variant.bytes for each in chosen))
        seconds = sum(each.variant.compile_seconds for each in chosen)
        costs = f"; about {bytes_ >> 10} KiB and {seconds:.1f} s to compile" if chosen else ""
        gain = sum(each.variant.gain for each in chosen)
        emit_remark(
            function, self.name, said + costs, tried=len(tried), chosen=len(chosen), gain=gain
        )


@dataclass(frozen=True)
class _Tried:
    """Sizes, the fraction of all runs that had them, and the time of a run with and without
    specialized code."""

    sizes: Mapping[str, int]
    share: float
    open: TrialCosts
    own: TrialCosts

    @staticmethod
    def of(ctx: Context, module: ModuleOp, sizes: Mapping[str, int], share: float) -> "_Tried":
        """Return the result of a trial. Raises BraidError where the model is impossible at them."""
        return _Tried(sizes, share, open_costs(ctx, module, sizes), own_costs(ctx, module, sizes))

    @property
    def speedup(self) -> float:
        """Return how many times as fast a run is in code of its own."""
        return (self.open.seconds + _RUN_SECONDS) / (self.own.seconds + _RUN_SECONDS)

    @property
    def variant(self) -> Variant:
        """Return the saving and the cost of the code; weights in the layouts of open code are
        shared."""
        packed = sum(
            bytes_ for key, bytes_ in self.own.packed.items() if key not in self.open.packed
        )
        return Variant(
            self.share * (self.open.seconds - self.own.seconds),
            self.own.kernels * _KERNEL_BYTES + packed,
            self.own.kernels * _KERNEL_SECONDS,
        )

    def __str__(self) -> str:
        """Return the sizes with their share of runs and their speedup."""
        named = ", ".join(f"{name} = {size}" for name, size in self.sizes.items())
        return f"{named} ({self.share:.0%} of runs, {self.speedup:.2f} times as fast)"
