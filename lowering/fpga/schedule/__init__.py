"""How much of an output each stage computes in a cycle: chosen, and carried out."""
