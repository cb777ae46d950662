"""Mistakes of other packages' families are named, with the group they were made for."""

import pytest
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import Block

from braid.analysis.sizes.open_forms import bound_group
from braid.analysis.storage.layout_choice import LayoutChoice
from braid.dialects.braid.elementwise import elementwise
from braid.dialects.braid.layout import Layout
from braid.dialects.braid.regions import FusedOp, YieldOp
from braid.dialects.braid.sizes import sized_type
from braid.lowering.cpu.fallback.emit_kernel import emit_kernel
from braid.lowering.cpu.kernels.elementwise import ElementwiseCandidate, ElementwiseFamily
from braid.support.errors import BraidError
from braid.support.sizes.expression import Extent, symbol
from braid.targets.costs.device_costs import DeviceCosts
from test.machines import AVX2

ROWS, FOUR = Layout.parse("ab"), Layout.parse("abcd")


def group_of_add(rows: Extent = 2) -> FusedOp:
    types = [sized_type(f32, (rows, 3))] * 2
    body = Block(arg_types=types)
    op = elementwise("add", *body.args)
    body.add_ops([op, YieldOp(op.results[0])])
    outside = Block(arg_types=types)
    group = FusedOp(outside.args, types[:1], body)
    outside.add_op(group)
    return group


class ClipCandidate(ElementwiseCandidate):
    """Right, unless a method is replaced."""


class ClipFamily(ElementwiseFamily):
    """One of another package: what is raised in it is its mistake."""

    def match(self, group):
        found = super().match(group)
        assert found is not None
        return ClipCandidate(found.group, found.unit, found.points, found.extents_of)


def raising(*arguments):
    raise ValueError("no such thing")


FAMILY = ClipFamily(AVX2, name="clip")


@pytest.mark.parametrize("method", ["match", "layouts", "seconds", "space", "emit", "overlap"])
def test_what_a_method_raises_names_family_and_op(method, monkeypatch) -> None:
    replaced = property(raising) if method == "layouts" else raising
    monkeypatch.setattr(ClipFamily if method == "match" else ClipCandidate, method, replaced)
    group = group_of_add()
    with pytest.raises(BraidError) as raised:
        costs = DeviceCosts.of_families([FAMILY], records={})
        for match in costs.kernels.matches.of(group):
            match.candidate.overlap()
        costs.kernels.options(group)
        emit_kernel("k", group, [FAMILY])
    assert raised.value.message == (
        f"kernel family 'clip' fails in '{method}' of a group of braid.add: "
        "ValueError: no such thing"
    )
    assert raised.value.hint is not None and "ClipFamily" in raised.value.hint


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (LayoutChoice((ROWS,), (ROWS,)), "a choice has 1 operands, the group has 2"),
        (LayoutChoice((ROWS, ROWS), ()), "a choice has 0 results, the group has 1"),
        (LayoutChoice((ROWS, FOUR), (ROWS,)), "'abcd' for number 1 of the operands has rank 4"),
        ((ROWS, ROWS, ROWS), "is not a LayoutChoice"),
    ],
)
def test_choices_are_checked(choice, said, monkeypatch) -> None:
    monkeypatch.setattr(ClipCandidate, "layouts", property(lambda self: [choice]))
    with pytest.raises(BraidError, match="kernel family 'clip' fails in 'layouts'") as e:
        DeviceCosts.of_families([FAMILY], records={}).kernels.options(group_of_add())
    assert said in e.value.message


def test_a_family_without_a_method_is_refused() -> None:
    class Half:
        name = "half"

    with pytest.raises(BraidError) as raised:
        DeviceCosts.of_families([Half()])  # pyright: ignore
    assert "Half' has no 'version', 'match'" in raised.value.message


def test_a_candidate_without_a_method_is_refused(monkeypatch) -> None:
    class Half:
        layouts = ()

    monkeypatch.setattr(ClipFamily, "match", lambda self, group: Half())
    with pytest.raises(BraidError, match="Half has no 'seconds', 'emit'"):
        DeviceCosts.of_families([FAMILY], records={}).kernels.options(group_of_add())


def test_what_makes_a_group_at_all_sizes_is_checked(monkeypatch) -> None:
    class Half:
        def supports_open_layout(self, choice):
            return 3

    opened = bound_group(group_of_add(symbol("rows")), {"rows": 2})
    matches = DeviceCosts.of_families([FAMILY], records={}).kernels.matches
    monkeypatch.setattr(ClipFamily, "match_open", lambda self, group: Half())
    with pytest.raises(BraidError, match="Half has no 'emit'"):
        matches.of(opened)
    monkeypatch.setattr(Half, "emit", raising, raising=False)
    with pytest.raises(
        BraidError, match=r"fails in 'supports_open_layout' .* it is 3, expected a bool"
    ):
        matches.of(opened)
    monkeypatch.setattr(ClipFamily, "match_open", lambda self, group: None)
    assert matches.of(opened) == ()


def test_a_space_without_a_default_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(ClipCandidate, "space", lambda self, level: iter(()))
    with pytest.raises(BraidError, match="level 0 has no schedule"):
        emit_kernel("k", group_of_add(), [FAMILY])


def test_no_kernel_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(ClipCandidate, "emit", lambda *arguments: ModuleOp([]))
    with pytest.raises(BraidError, match="expected a Kernel"):
        emit_kernel("k", group_of_add(), [FAMILY])


def test_braids_own_families_are_believed(monkeypatch) -> None:
    monkeypatch.setattr(ElementwiseCandidate, "emit", raising)
    with pytest.raises(ValueError, match="no such thing"):
        emit_kernel("k", group_of_add(), [ElementwiseFamily(AVX2)])


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -1.0, "soon"])
def test_seconds_are_a_finite_number(wrong: object, monkeypatch) -> None:
    monkeypatch.setattr(ClipCandidate, "seconds", lambda self, choice: wrong)
    with pytest.raises(BraidError, match="kernel family 'clip' fails in 'seconds'"):
        DeviceCosts.of_families([FAMILY], records={}).kernels.options(group_of_add())


def test_a_family_that_inherits_nothing_has_the_defaults() -> None:
    class Plain:
        layouts = (LayoutChoice((ROWS, ROWS), (ROWS,)),)

        def seconds(self, choice):
            return 1.0

        def emit(self, symbol, schedule):
            raise AssertionError("nothing is emitted here")

    class PlainFamily:
        name, version = "plain", 1

        def match(self, group):
            return Plain()

    costs, group = DeviceCosts.of_families([PlainFamily()], records={}), group_of_add()  # pyright: ignore
    (option,) = costs.kernels.options(group)
    assert option.match.default_schedule() == {}
    assert not option.match.supports_schedule({"rows": 4})
    assert option.match.candidate.overlap() is None
    (choice,) = Plain.layouts
    strided = LayoutChoice((ROWS.with_strides((6, 1)), ROWS), (ROWS,))
    assert option.match.supports_layout(choice) and not option.match.supports_layout(strided)


def test_former_names_of_methods_still_answer() -> None:
    """Families that were written for an earlier version override methods by their old names."""

    class Earlier(ElementwiseCandidate):
        def offers(self, choice):
            return choice == (LayoutChoice((ROWS, ROWS), (ROWS,)))

        def takes_strides(self, choice):
            return False

        def takes(self, schedule):
            return schedule.unroll == 7

    class EarlierFamily(ElementwiseFamily):
        def match(self, group):
            found = super().match(group)
            assert found is not None
            return Earlier(found.group, found.unit, found.points, found.extents_of)

        def prefers_parts(self, group):
            return True

    costs = DeviceCosts.of_families([EarlierFamily(AVX2, name="earlier")], records={})
    group = group_of_add()
    (match,) = costs.kernels.matches.of(group)
    plain = LayoutChoice((ROWS, ROWS), (ROWS,))
    strided = LayoutChoice((ROWS.with_strides((6, 1)), ROWS), (ROWS,))
    with pytest.warns(DeprecationWarning, match="'offers', which is called 'supports_layout' now"):
        assert match.supports_layout(plain)
    with pytest.warns(DeprecationWarning, match="supports_strides"):
        assert not match.candidate.supports_strides(strided)
    with pytest.warns(DeprecationWarning, match="supports_schedule"):
        assert match.supports_schedule({"unroll": 7}) and not match.supports_schedule({"unroll": 9})
    with pytest.warns(DeprecationWarning, match="rejects_fusion"):
        assert not costs.kernels.matches.any_takes(group)


def test_a_method_under_its_new_name_comes_first(recwarn: pytest.WarningsRecorder) -> None:
    class Both(ClipCandidate):
        def offers(self, choice):
            raise AssertionError("the new name is defined as well")

        def supports_layout(self, choice):
            return True

    class BothFamily(ClipFamily):
        def match(self, group):
            found = super().match(group)
            return Both(found.group, found.unit, found.points, found.extents_of)

    costs = DeviceCosts.of_families([BothFamily(AVX2, name="both")], records={})
    (match,) = costs.kernels.matches.of(group_of_add())
    assert match.supports_layout(LayoutChoice((ROWS, ROWS), (ROWS,)))
    assert not [each for each in recwarn if each.category is DeprecationWarning]


def test_an_open_candidate_under_former_names_is_complete(monkeypatch) -> None:
    class Earlier:
        def makes(self, choice):
            return True

        def emit(self, symbol, schedule):
            raise AssertionError("nothing is emitted here")

    monkeypatch.setattr(ClipFamily, "match_open", lambda self, group: Earlier())
    matches = DeviceCosts.of_families([FAMILY], records={}).kernels.matches
    with pytest.warns(DeprecationWarning, match="supports_open_layout"):
        assert matches.of(bound_group(group_of_add(symbol("rows")), {"rows": 2}))
