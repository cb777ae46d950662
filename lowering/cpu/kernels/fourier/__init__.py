"""Fast Fourier transforms: butterflies, the order of their steps, and what real numbers spare."""
