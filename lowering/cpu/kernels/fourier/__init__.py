"""Fast Fourier transforms: butterflies, the order of their steps, and savings for real numbers."""
