"""Which part of an operand a part of a result reads, and tiles made of such parts."""
