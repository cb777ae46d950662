"""Copies that permute elements: as a loop nest, and as tiles that are turned in registers."""
