"""The parts of `braid-lsp`, one feature a file."""
