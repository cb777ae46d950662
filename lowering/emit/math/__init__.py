"""Elementary functions and the elementwise table, expanded into arithmetic on vectors."""
