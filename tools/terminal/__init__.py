"""Share parts of commands: written files, standard output, interrupts, typed lines."""
