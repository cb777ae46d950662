"""Support without IR or models: errors, sizes, files, caches, processes, bindings of LLVM."""
