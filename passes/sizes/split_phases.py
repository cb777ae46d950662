"""`split-phases`: one function for each phase of a model whose data decide sizes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, count

from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.structure.loop_nests import op_name
from braid.dialects.braid.attribute_names import (
    NAME,
    PHASE,
    PHASE_OUTPUTS,
    SYMBOLS,
    VALUE_SIZES,
)
from braid.dialects.braid.base import extents_of
from braid.dialects.braid.constants import ConstantOp, IotaOp, ParameterOp
from braid.dialects.braid.decided_sizes import (
    DecideSizesOp,
    phase_outputs_attribute,
    symbols_mentioned,
)
from braid.dialects.braid.names import names_of
from braid.dialects.braid.ports import input_names, output_names
from braid.dialects.braid.sized_ops import SizeValuesOp
from braid.dialects.braid.sizes import (
    SizesAttr,
    assumptions_of,
    symbols_attribute,
    value_sizes,
)
from braid.dialects.braid.variants import public_functions
from braid.passes.sizes.phase_levels import PhaseLevels, captured_values
from braid.support.errors import BraidError, UnsupportedError
from braid.support.sizes.expression import Size, Symbol, atom_alone, symbol


@dataclass(frozen=True)
class SplitPhasesPass(ModulePass):
    """Split a function at the ops that make sizes of data.

    In: a module whose only public function may have `braid.decide_sizes` ops, outside of control
    flow. Out: one function for each phase, in their order, with `braid.phase`; the module says in
    `braid.phase_outputs` which of their results are those of the model. An op is in the first phase
    in which its operands and the sizes that it mentions are known, so that there are as few phases
    as decisions depend on each other. Values that a later phase reads are results, named
    `braid.name`, and arguments there; constants and parameters are cloned. The elements of a
    decided tensor, and other sizes that no argument's shape tells, come in arguments with
    `braid.value_sizes`. A module without such ops stays as it is.

    Raises BraidError for a decision inside of control flow, and for a symbol that is mentioned
    before it is decided, or decided twice.

    ```mlir
    func.func @main(%x: tensor<6xf32>, %c: tensor<1xi64>) -> tensor<?xf32, #braid.sizes<["n"]>> {
      %0 = arith.addi …
      braid.decide_sizes %0 {sizes = #braid.sizes<["n"]>} : tensor<1xi64>
      %y = braid.sized_slice %x {…}                   // @main_0 returns %0, @main_1 has the slice
    ```
    """

    name = "split-phases"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Split the function of the module; raises as the class says."""
        decisions = [inner for inner in op.walk() if isinstance(inner, DecideSizesOp)]
        if not decisions:
            return
        functions = public_functions(op)
        if len(functions) != 1:
            raise BraidError(
                "data decide sizes in a module of several public functions",
                location=source_location(decisions[0]),
                hint="make the functions that are not the model private",
            )
        _check_body(functions[0])
        for decision in decisions:
            _check_place(decision, functions[0])
        _split(op, functions[0])


def _check_body(function: FuncOp) -> None:
    """Raise BraidError for a function that is no straight line of ops with named tensors."""
    location = source_location(function)
    if len(function.body.blocks) != 1 or not isinstance(function.body.block.last_op, ReturnOp):
        raise BraidError(
            "data decide sizes in a function of several blocks",
            location=location,
            hint="mlir-opt --lift-cf-to-scf makes scf.if and scf.while of branches",
        )
    for argument in function.body.block.args:
        if not isinstance(argument.type, TensorType):
            raise BraidError(
                f"data decide sizes in a function with an argument of type {argument.type}, "
                "expected tensors",
                location=location,
                hint="take a tensor and read it with tensor.extract",
            )
    names = input_names(function)
    if repeated := [name for name in names if names.count(name) > 1]:
        raise BraidError(f"two arguments are named '{repeated[0]}'", location=location)


def _check_place(decision: DecideSizesOp, function: FuncOp) -> None:
    if decision.parent_op() is not function:
        raise UnsupportedError(
            "data decide a size inside of control flow, or of a function that the model calls",
            location=source_location(decision),
            hint="decide it before the loop or branch, or compute on tensors of a bound",
        )


@dataclass(eq=False)
class _Phase:
    """The ops of a phase, its inputs and its results."""

    number: int
    ops: list[Operation] = field(default_factory=list[Operation])
    taken: list[SSAValue] = field(default_factory=list[SSAValue])
    returned: dict[SSAValue, None] = field(default_factory=dict[SSAValue, None])


def _split(module: ModuleOp, function: FuncOp) -> None:
    """Replace the function by those of its phases."""
    block = function.body.block
    _put_scalars_in_tensors(block)
    levels = PhaseLevels.of(function)
    terminator = block.last_op
    assert isinstance(terminator, ReturnOp)
    phases = [_Phase(number) for number in range(levels.count)]
    for op in block.ops:
        if op is not terminator and not _is_leaf(op) and not isinstance(op, DecideSizesOp):
            phases[levels.of_op[op]].ops.append(op)
    names = _ValueNames(function)
    outputs = _outputs(terminator, phases, levels, names)
    sources = _SizeSources(function, levels, phases)
    for phase in reversed(phases):  # later ones say what earlier ones return
        sources.collect(phase)
    made = [_function_of(phase, function, names, sources) for phase in phases]
    module.body.block.insert_ops_before(made, function)
    function.detach()
    function.erase(safe_erase=False)
    pairs = zip(output_names(function), outputs, strict=True)
    module.attributes[PHASE_OUTPUTS] = phase_outputs_attribute(list(pairs))


def _is_leaf(op: Operation) -> bool:
    """Return whether each phase has a separate copy of the op's results, such as scalars."""
    if isinstance(op, ConstantOp | ParameterOp | SizeValuesOp | IotaOp | tensor.ExtractOp):
        return True
    return not op.regions and op_name(op).partition(".")[0] in ("arith", "math")


def _put_scalars_in_tensors(block: Block) -> None:
    """Let scalars that control flow gives pass through tensors, which phases can hand on."""
    for op in [op for op in block.ops if op.regions]:
        for result in op.results:
            if isinstance(result.type, TensorType) or not result.uses:
                continue
            uses = list(result.uses)
            held = tensor.FromElementsOp(result, result_type=TensorType(result.type, []))
            read = tensor.ExtractOp(held.result, [], result.type)
            block.insert_ops_after([held, read], op)
            for use in uses:
                use.operation.operands[use.index] = read.result


# ---- Names of values between phases, and the sizes that they give ----


class _ValueNames:
    """A name for each value that phases hand on, which no other value or input has."""

    def __init__(self, function: FuncOp) -> None:
        self._of: dict[SSAValue, str] = dict(
            zip(function.body.block.args, input_names(function), strict=True)
        )
        self._taken = {*self._of.values()}

    def of(self, value: SSAValue, wanted: str = "value") -> str:
        """Return the name of a value: that which the model has for it, else `wanted`.

        It has a number where another value has that name.
        """
        if value not in self._of:
            own = names_of(value.owner) if isinstance(value.owner, Operation) else ()
            self._of[value] = self.free(own[0] if own else wanted)
        return self._of[value]

    def free(self, wanted: str) -> str:
        """Return a name that no value has yet."""
        names = chain([wanted], (f"{wanted}_{n}" for n in count(2)))
        name = next(each for each in names if each not in self._taken)
        self._taken.add(name)
        return name


def _outputs(
    terminator: ReturnOp, phases: Sequence[_Phase], levels: PhaseLevels, names: _ValueNames
) -> list[str]:
    """Let phases return the outputs of the model, and return the names of these values."""
    function = terminator.parent_op()
    assert isinstance(function, FuncOp)
    found: list[str] = []
    for value, port in zip(terminator.arguments, output_names(function), strict=True):
        if isinstance(value.owner, Operation):
            phases[levels.of_op[value.owner]].returned[value] = None
        found.append(names.of(value, port))
    return found


@dataclass
class _SizeSources:
    """The values from which phases get the sizes that shapes of their arguments do not give."""

    function: FuncOp
    levels: PhaseLevels
    phases: Sequence[_Phase]
    holders: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    """The value whose elements are sizes, one of them the symbol of this name."""
    symbols: dict[SSAValue, tuple[str, ...]] = field(
        default_factory=dict[SSAValue, tuple[str, ...]]
    )
    """The symbols that the elements of such a value are."""

    def __post_init__(self) -> None:
        block = self.function.body.block
        for argument, names in zip(block.args, value_sizes(self.function), strict=True):
            self._hold(argument, names)
        for op in block.ops:
            if isinstance(op, DecideSizesOp):
                self._hold(op.values, op.names)

    def _hold(self, value: SSAValue, names: Sequence[str]) -> None:
        if names:
            self.symbols[value] = tuple(names)
            self.holders |= dict.fromkeys(names, value)

    def collect(self, phase: _Phase) -> None:
        """Find the inputs of a phase: values of earlier ones, and values that give its sizes."""
        taken: dict[SSAValue, None] = {}
        if phase.number == 0:
            taken |= dict.fromkeys(self.function.body.block.args)
        for value in self._read(phase):
            if isinstance(value.owner, Block) or self.levels.of_op[value.owner] < phase.number:
                taken[value] = None
        known = {name for value in taken for name in _symbols_alone(value)}
        known |= {name for value in taken for name in self.symbols.get(value, ())}
        for name in sorted(self._mentioned(phase) - known):
            holder = self.holders.get(name)
            if holder is None:
                holder = self._size_of_input(name)
            taken[holder] = None
        phase.taken = list(taken)
        for value in taken:
            if isinstance(value.owner, Operation):
                self.phases[self.levels.of_op[value.owner]].returned[value] = None

    def _read(self, phase: _Phase) -> Iterator[SSAValue]:
        for op in (*phase.ops, *_leaves(phase)):
            yield from (value for value in captured_values(op) if _leaf(value) is None)

    def _mentioned(self, phase: _Phase) -> set[str]:
        ops = (*phase.ops, *_leaves(phase))
        return {name for op in ops for name in symbols_mentioned(op)}

    def _size_of_input(self, name: str) -> SSAValue:
        """Return a value of the first phase that is the size of a dim of the model's inputs."""
        op = SizeValuesOp.of([symbol(name)], [1])
        self.levels.of_op[op] = 0
        self._hold(op.output, [name])
        return op.output


def _symbols_alone(value: SSAValue) -> Iterator[str]:
    """Yield the symbols that are dims of a tensor as they stand."""
    for extent in extents_of(value):
        atom = atom_alone(extent) if isinstance(extent, Size) else None
        if isinstance(atom, Symbol):
            yield atom.name


def _leaf(value: SSAValue) -> Operation | None:
    """Return the op of a value that each phase makes for itself."""
    owner = value.owner
    return owner if isinstance(owner, Operation) and _is_leaf(owner) else None


def _leaves(phase: _Phase) -> Iterator[Operation]:
    """Yield the ops that a phase has copies of."""
    seen: set[Operation] = set()
    waiting = [*phase.returned, *(value for op in phase.ops for value in captured_values(op))]
    while waiting:
        leaf = _leaf(waiting.pop())
        if leaf is not None and leaf not in seen:
            seen.add(leaf)
            waiting += leaf.operands
            yield leaf


# ---- Making the functions ----


def _function_of(
    phase: _Phase, function: FuncOp, names: _ValueNames, sources: _SizeSources
) -> FuncOp:
    """Return the function of a phase, whose ops are moved there."""
    block = Block(arg_types=[value.type for value in phase.taken])
    mapped: dict[SSAValue, SSAValue] = dict(zip(phase.taken, block.args, strict=True))
    for op in phase.ops:
        for value in captured_values(op):
            _copy_leaf(value, mapped, block)
        op.detach()
        block.add_op(op)
    for value in phase.returned:
        _copy_leaf(value, mapped, block)
    own = set(block.walk())
    for op in own:
        op.operands = [mapped.get(operand, operand) for operand in op.operands]
    results = [mapped.get(value, value) for value in phase.returned]
    block.add_op(ReturnOp(*results))
    arguments = [_argument(value, function, names, sources) for value in phase.taken]
    returned = [DictionaryAttr({NAME: StringAttr(names.of(value))}) for value in phase.returned]
    made = FuncOp(
        f"{function.sym_name.data}_{phase.number}",
        FunctionType.from_lists([a.type for a in block.args], [value.type for value in results]),
        Region(block),
        arg_attrs=ArrayAttr(arguments),
        res_attrs=ArrayAttr(returned),
    )
    made.attributes |= {k: v for k, v in function.attributes.items() if k != SYMBOLS}
    made.attributes[PHASE] = IntegerAttr(phase.number, i64)
    used = {name for op in made.walk() for name in symbols_mentioned(op)}
    assumed = {n: own for n, own in assumptions_of(function).symbols if n in used}
    if assumed:
        made.attributes[SYMBOLS] = symbols_attribute(assumed)
    return made


def _copy_leaf(value: SSAValue, mapped: dict[SSAValue, SSAValue], block: Block) -> None:
    """Append a copy of the op of a leaf to a block, after those that it reads."""
    leaf = _leaf(value)
    if leaf is None or value in mapped:
        return
    for operand in leaf.operands:
        _copy_leaf(operand, mapped, block)
    copy = leaf.clone(mapped)
    block.add_op(copy)
    mapped.update(zip(leaf.results, copy.results, strict=True))


def _argument(
    value: SSAValue, function: FuncOp, names: _ValueNames, sources: _SizeSources
) -> DictionaryAttr:
    """Return the attributes of an argument that takes a value."""
    entries: dict[str, Attribute] = {}
    if isinstance(value, BlockArgument) and function.arg_attrs is not None:
        entries |= function.arg_attrs.data[value.index].data
    entries[NAME] = StringAttr(names.of(value))
    if value in sources.symbols:
        entries[VALUE_SIZES] = SizesAttr.of([symbol(name) for name in sources.symbols[value]])
    return DictionaryAttr(entries)
