"""What knows neither IR nor models: errors, files, caches, processes, the bindings of LLVM."""
