"""What stock xdsl-opt sees of braid."""

from xdsl.transforms import get_all_passes
from xdsl.universe import XDSL_UNIVERSE

from braid.passes.infrastructure.registry import available_passes, braid_passes, pass_table
from braid.support.entry_points import installed_tables
from braid.universe import UNIVERSE, make_context


def test_no_name_clashes_with_xdsl() -> None:
    assert not set(UNIVERSE.all_passes) & set(XDSL_UNIVERSE.all_passes)
    assert not set(UNIVERSE.all_dialects) & set(XDSL_UNIVERSE.all_dialects)
    assert set(UNIVERSE.all_passes) == set(pass_table()) - set(get_all_passes())


def test_the_table_of_passes_is_sorted_and_every_line_loads() -> None:
    assert all(list(table) == sorted(table) for table in installed_tables())
    for name, factory in braid_passes().items():
        assert factory().name == name


def test_braids_passes_win() -> None:
    assert available_passes()["cse"]().__module__.startswith("braid.")
    assert available_passes()["convert-scf-to-cf"]().__module__.startswith("xdsl.")


def test_a_context_knows_the_dialects() -> None:
    assert {"braid", "arith", "scf", "func"} <= set(make_context().registered_dialect_names)
