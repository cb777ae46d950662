// RUN: %braid-opt %s -p select-layouts --split-input-file --verify-diagnostics

// expected-error @+1 {{'braid.reorder_costs' holds {source = "l0", target = "l1", cost = "much"}}}
module attributes {braid.reorder_costs = [{source = "l0", target = "l1", cost = "much"}]} {}

// -----

// expected-error @+1 {{'braid.reorder_costs' holds {source = "l0", target = "fast", cost = 1.000000e+00 : f64}}}
module attributes {braid.reorder_costs = [{source = "l0", target = "fast", cost = 1.0 : f64}]} {}

// -----

// Of two costs neither is taken, whatever the layouts are called.
// expected-error @+1 {{'braid.reorder_costs' holds {source = "abcd", target = "NHWC", cost = 2.000000e+00 : f64}, which costs something else in another entry}}
module attributes {braid.reorder_costs = [{source = "NCHW", target = "acdb", cost = 1.0 : f64}, {source = "abcd", target = "NHWC", cost = 2.0 : f64}]} {}

// -----

// expected-error @+1 {{'braid.reorder_costs' holds {source = "NCHW", target = "abcd", cost = 1.000000e+00 : f64}, which stores nothing anew}}
module attributes {braid.reorder_costs = [{source = "NCHW", target = "abcd", cost = 1.0 : f64}]} {}

// -----

// expected-error @+1 {{'braid.reorder_costs' holds {source = "l0", target = "l1", cost = 1.000000e+00 : f64, device = "gpu:0"}}}
module attributes {braid.reorder_costs = [{source = "l0", target = "l1", cost = 1.0 : f64, device = "gpu:0"}]} {}

// -----

// expected-error @+1 {{'braid.reorder_costs' holds {source = "l0", target = "l1", cost = 0x7ff8000000000000 : f64}}}
module attributes {braid.reorder_costs = [{source = "l0", target = "l1", cost = 0x7FF8000000000000 : f64}]} {}
