"""Tables of text for people."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from braid.tools.explain.views import Table


def print_table(table: "Table") -> None:
    """Print a table that has rows."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table as RichTable

    if not table.rows:
        return
    shown = RichTable(*table.columns)
    for row in table.rows:
        shown.add_row(*map(escape, row))
    Console().print(shown)
