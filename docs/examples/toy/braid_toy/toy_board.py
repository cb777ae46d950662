"""The path of the description of the target `toy-board`."""

from pathlib import Path

PATH = Path(__file__).with_name("toy_board.toml")
