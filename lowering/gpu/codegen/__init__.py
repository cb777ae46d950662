"""From kernels in the `gpu` dialect to LLVM IR, PTX, machine code, and code for the emulator."""
