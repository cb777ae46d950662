"""The sizes of open dims: numbers in place of symbols."""
