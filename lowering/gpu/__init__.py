"""The backend of GPUs: kernels in the `gpu` dialect, as PTX and as code that emulates them."""
