"""Kernel families: their protocol, the families of a device, calls of other packages' families."""
