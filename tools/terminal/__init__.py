"""What commands share: files they write, standard output, interrupts, and lines that are typed."""
