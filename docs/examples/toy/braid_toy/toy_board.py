"""Where the description of the target `toy-board` is."""

from pathlib import Path

PATH = Path(__file__).with_name("toy_board.toml")
