"""Depthwise convolution and pooling: vectors over channels or along lines of images."""
