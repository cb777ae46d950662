"""From a design to SystemVerilog, by CIRCT, and its simulation by Verilator."""
