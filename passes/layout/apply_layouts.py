"""`apply-layouts`: the layouts that were decided go into the types, reorders where they differ."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from braid.analysis.diagnostics.locations import source_location
from braid.analysis.execution.compute_ops import is_compute, runtime_functions
from braid.analysis.storage.view_groups import is_view_group
from braid.analysis.structure.carried_values import Carried, carried_values
from braid.analysis.structure.nesting import ops_outside_groups
from braid.analysis.structure.parameter_expressions import ParameterExpressions
from braid.dialects.braid.attribute_names import DEVICE, LAYOUTS, REORDERS
from braid.dialects.braid.attributes import layout_of, with_layout
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.names import names_of, set_names
from braid.dialects.braid.placement import ReorderOp
from braid.dialects.braid.ports import input_names
from braid.dialects.braid.regions import FusedOp, GroupOp, YieldOp
from braid.passes.layout.decisions import read_layouts, read_reorders, stale_reorder
from braid.passes.layout.flow import is_tensor, signature_values
from braid.passes.layout.problem import Reorder
from braid.passes.outlining.outline_kernels import dissolve
from braid.support.errors import BraidError


@dataclass(frozen=True)
class _Wish:
    """Operand `index` of `op` is to be read in `layout`."""

    op: Operation
    index: int
    layout: Layout


@dataclass
class _Stored:
    """The forms in which values are available: by value, block and layout."""

    forms: dict[tuple[SSAValue, Block, Layout], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, Block, Layout], SSAValue]
    )

    def find(self, value: SSAValue, layout: Layout, block: Block | None) -> SSAValue | None:
        """Return `value` in `layout`, from the innermost block around that has it."""
        if layout_of(value.type) == layout:
            return value
        while block is not None:
            if (value, block, layout) in self.forms:
                return self.forms[value, block, layout]
            parent = block.parent_op()
            block = parent.parent if parent is not None else None
        return None


def _decided(op: Operation, key: str, count: int) -> list[Layout]:
    layouts = read_layouts(op, key)
    if layouts is None or len(layouts) != count:
        raise BraidError(
            f"no layouts are decided for the {count} {key} of '{op.name}'",
            location=source_location(op),
            hint="run select-layouts before apply-layouts",
        )
    return layouts


def _retype(value: SSAValue, layout: Layout) -> SSAValue:
    """Return the value that stands for `value`, now stored in `layout`."""
    stored = with_layout(value.type, layout)
    return value if stored == value.type else Rewriter.replace_value_with_new_type(value, stored)


def _retype_group(group: GroupOp) -> None:
    """Give the arguments of the body the operands' types, and its yielded values the results'."""
    for argument, operand in zip(group.body.block.args, group.operands, strict=True):
        if argument.type != operand.type:
            Rewriter.replace_value_with_new_type(argument, operand.type)
    terminator = group.terminator
    retyped: set[SSAValue] = set(group.body.block.args)
    for index, result in enumerate(group.results):
        value = terminator.operands[index]
        if value.type == result.type:
            retyped.add(value)
        elif value in retyped:
            reorder = ReorderOp.to(value, layout_of(result.type))
            Rewriter.insert_op(reorder, InsertPoint.before(terminator))
            terminator.operands[index] = reorder.output
        else:
            retyped.add(Rewriter.replace_value_with_new_type(value, result.type))


def _reorder(value: SSAValue, reorder: Reorder) -> Operation:
    """Return `value`, the form that is there, in the layout of `reorder`: a view or a group."""
    inner = ReorderOp.to(value, reorder.target)
    set_names(inner, [f"{name}/to-{reorder.target}" for name in _names_of(reorder.value)[:1]])
    if reorder.is_view:
        return inner
    group = _group_of(inner)
    if reorder.device is not None:
        group.attributes[DEVICE] = StringAttr(reorder.device)
    return group


def _names_of(value: SSAValue) -> tuple[str, ...]:
    """Return the stable names of what makes `value`."""
    owner = value.owner
    if isinstance(owner, GroupOp) and isinstance(value, OpResult):
        return _names_of(owner.terminator.operands[value.index])
    if isinstance(owner, Operation):
        return names_of(owner)
    function = owner.parent_op()
    assert isinstance(value, BlockArgument)
    return (input_names(function)[value.index],) if isinstance(function, FuncOp) else ()


def _group_of(reorder: ReorderOp) -> FusedOp:
    """Return a group of its own for `reorder`."""
    value = reorder.input
    body = Block(arg_types=[value.type])
    reorder.operands[0] = body.args[0]
    body.add_ops([reorder, YieldOp(reorder.output)])
    group = FusedOp([value], [reorder.output.type], body)
    set_names(group, names_of(reorder))
    if isinstance(value.owner, Operation):
        group.location = value.owner.location
    return group


def _first_point(value: SSAValue, block: Block) -> InsertPoint:
    """Return the earliest point of `block` at which `value` is available."""
    owner = value.owner
    if isinstance(owner, Operation) and owner.parent is block:
        return InsertPoint.after(owner)
    return InsertPoint.at_start(block)


def _make(func: FuncOp, reorders: Sequence[Reorder], stored: _Stored) -> None:
    """Make the decided reorders; each reads a form that existed before it."""
    for reorder in reorders:
        source = stored.find(reorder.value, reorder.source, reorder.block)
        if source is None:
            raise stale_reorder(func, f"reads a value in '{reorder.source}', in which it is not")
        op = _reorder(source, reorder)
        Rewriter.insert_op(op, _first_point(source, reorder.block))
        stored.forms[reorder.value, reorder.block, reorder.target] = op.results[0]


class _Applier:
    def __init__(self, func: FuncOp, *, change_signature: bool) -> None:
        self._func = func
        self._changes_signature = LAYOUTS in func.attributes
        if self._changes_signature and not change_signature:
            raise BraidError(
                f"the layouts that were chosen change the signature of '@{func.sym_name.data}'",
                location=source_location(func),
                hint="give apply-layouts{change-signature}, or select without change-signature",
            )
        self._collected_with_others = (scf.YieldOp, scf.ConditionOp)
        if self._changes_signature:
            self._collected_with_others += (ReturnOp,)
        self._expressions = ParameterExpressions()
        self._stored = _Stored()
        self._known: dict[tuple[SSAValue, Layout], SSAValue] = {}

    def run(self) -> None:
        reorders = read_reorders(self._func)
        ops = list(ops_outside_groups(self._func))
        known = {op for op in ops if op.results and self._expressions.is_known(op.results[0])}
        wishes: list[_Wish] = []
        types: list[tuple[SSAValue, Layout]] = []
        if self._changes_signature:
            self._collect_carried(self._func, signature_values(self._func), wishes, types)
        else:
            arguments = filter(is_tensor, self._func.body.block.args)
            types.extend((argument, layout_of(argument.type)) for argument in arguments)
        for op in ops:
            if op not in known:
                self._collect(op, wishes, types)
        renamed = {value: _retype(value, layout) for value, layout in types}
        for reorder in reorders:
            if reorder.value not in renamed:
                raise stale_reorder(self._func, "stores anew what is not stored")
        _make(self._func, [replace(r, value=renamed[r.value]) for r in reorders], self._stored)
        for wish in wishes:
            wish.op.operands[wish.index] = self._read(wish)
        for op in ops:
            if isinstance(op, GroupOp) and op not in known:
                _retype_group(op)
            op.attributes.pop(LAYOUTS, None)
            if isinstance(op, FusedOp) and op not in known and is_view_group(op):
                dissolve(op)
        for attribute in (REORDERS, LAYOUTS):
            self._func.attributes.pop(attribute, None)
        self._func.update_function_type()

    def _collect(
        self, op: Operation, wishes: list[_Wish], types: list[tuple[SSAValue, Layout]]
    ) -> None:
        """Collect the layouts in which `op` reads and makes tensors: those decided on it, else its
        types'.
        """
        if isinstance(op, scf.IfOp | scf.IndexSwitchOp | scf.ForOp | scf.WhileOp):
            self._collect_carried(op, carried_values(op), wishes, types)
        elif isinstance(op, self._collected_with_others):
            return
        elif is_compute(op) or isinstance(op, GroupOp):
            operands = _decided(op, "operands", len(op.operands))
            results = _decided(op, "results", len(op.results))
            wishes.extend(_Wish(op, index, layout) for index, layout in enumerate(operands))
            types.extend(zip(op.results, results, strict=True))
        else:
            types.extend((r, layout_of(r.type)) for r in op.results if is_tensor(r))
            for index, operand in enumerate(op.operands):
                if is_tensor(operand):
                    wishes.append(_Wish(op, index, layout_of(operand.type)))

    def _collect_carried(
        self,
        op: Operation,
        carried: Sequence[Carried],
        wishes: list[_Wish],
        types: list[tuple[SSAValue, Layout]],
    ) -> None:
        layouts = _decided(op, "carried", len(carried)) if carried else []
        for item, layout in zip(carried, layouts, strict=True):
            types.extend((value, layout) for value in item.makes)
            wishes.extend(_Wish(user, index, layout) for user, index in item.reads)

    def _read(self, wish: _Wish) -> SSAValue:
        """Return the operand of `wish`: an existing form of the value, or a reorder of a weight."""
        value = wish.op.operands[wish.index]
        if self._expressions.is_known(value):
            return self._known_in(value, wish.layout)
        found = self._stored.find(value, wish.layout, wish.op.parent)
        if found is None:
            raise BraidError(
                f"operand {wish.index} of '{wish.op.name}' is wanted in layout '{wish.layout}', "
                "in which it is not made available",
                location=source_location(wish.op),
                hint="run select-layouts again after changing the module",
            )
        return found

    def _known_in(self, value: SSAValue, layout: Layout) -> SSAValue:
        if layout_of(value.type) == layout:
            return value
        if (value, layout) not in self._known:
            reorder = ReorderOp.to(value, layout)
            assert isinstance(value.owner, Operation)
            Rewriter.insert_op(reorder, InsertPoint.after(value.owner))
            self._known[value, layout] = reorder.output
        return self._known[value, layout]


@dataclass(frozen=True)
class ApplyLayoutsPass(ModulePass):
    """Writes the decided layouts into types and makes the decided reorders.

    In: `braid.layouts` on every compute op and every op that carries tensors, and
    `braid.reorders` on functions, as `select-layouts` writes them. Out: types with layouts,
    `braid.reorder` in groups of their own, reorders of weights outside groups, where
    `hoist-parameter-expressions` takes them to compile time. The layouts in a function's
    signature stay, unless others are decided and `change-signature` is given. Raises `BraidError`
    where a decision is missing or does not fit.

    ```mlir
    %y = braid.fused(%x) … : (tensor<1x8x4x4xf32, #braid.layout<"acdb">>) -> …
    ```
    """

    name = "apply-layouts"

    change_signature: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Apply in every function that runs with the model."""
        for func in runtime_functions(op):
            _Applier(func, change_signature=self.change_signature).run()
