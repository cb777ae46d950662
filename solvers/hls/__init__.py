"""Pipelined loop nests that stream to each other: intervals, depths, cycles, resources."""
