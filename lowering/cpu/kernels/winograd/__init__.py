"""Convolution by Winograd's algorithms: transforms in registers, problem, code and times."""
