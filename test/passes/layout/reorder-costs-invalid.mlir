// RUN: %braid-opt %s -p select-layouts --split-input-file --verify-diagnostics

// expected-error @+1 {{'braid.reorder_costs' holds {source = "l0", target = "l1", cost = "much"}}}
module attributes {braid.reorder_costs = [{source = "l0", target = "l1", cost = "much"}]} {}

// -----

// expected-error @+1 {{'braid.reorder_costs' holds {source = "l0", target = "fast", cost = 1.000000e+00 : f64}}}
module attributes {braid.reorder_costs = [{source = "l0", target = "fast", cost = 1.0 : f64}]} {}
