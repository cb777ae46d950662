"""What knows neither IR nor models: errors, sizes, files, caches, processes, bindings of LLVM."""
