"""Checks of what decision passes claim, by code that shares nothing with what decided."""
