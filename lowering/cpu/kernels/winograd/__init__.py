"""Convolution by Winograd's algorithms: transforms in registers, code and times."""
