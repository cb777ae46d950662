"""Ops whose operands do not fit a memory become several."""
