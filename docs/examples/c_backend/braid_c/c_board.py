"""Where the description of the target `c-board` is."""

from pathlib import Path

PATH = Path(__file__).with_name("c_board.toml")
