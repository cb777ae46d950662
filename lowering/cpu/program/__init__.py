"""The program: what remains of a model after its kernels, as code on raw pointers."""
