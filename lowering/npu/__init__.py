"""Instruction streams for chips with several units."""
