"""Share what commands need: files they write, standard output, interrupts, lines typed."""
