"""Pure algorithms on integers and arrays; no IR and no import from the rest of braid."""
