"""The path of the description of the target `c-board`."""

from pathlib import Path

PATH = Path(__file__).with_name("c_board.toml")
