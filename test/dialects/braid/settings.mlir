// A module holds its settings; default settings are not printed.
// RUN: %braid-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: builtin.module @strict attributes {braid.settings = #braid.settings<{numerics = "strict", kernels = "best"}>}
module @strict attributes {braid.settings = #braid.settings<{numerics = "strict", kernels = "best"}>} {
}
// -----
// CHECK: builtin.module @flags attributes {braid.settings = #braid.settings<{emulate = true}>}
module @flags attributes {braid.settings = #braid.settings<{emulate = true, library_on_miss = false}>} {
}
// -----
// expected-error @+1 {{there is no setting 'numeric'; did you mean 'numerics'?}}
module attributes {braid.settings = #braid.settings<{numeric = "strict"}>} {
}
// -----
// expected-error @+1 {{kernels are 'bests', expected one of generated, library, best, generic; did you mean 'best'?}}
module attributes {braid.settings = #braid.settings<{kernels = "bests"}>} {
}
// -----
// expected-error @+1 {{emulate is '1 : i64', expected true or false}}
module attributes {braid.settings = #braid.settings<{emulate = 1 : i64}>} {
}
// -----
// expected-error @+1 {{'braid.settings' of 'func.func' op means nothing there, it is for 'builtin.module'}}
func.func private @f() attributes {braid.settings = #braid.settings<{}>}
// -----
// expected-error @+1 {{'braid.settings' of 'builtin.module' op is "strict", expected settings, such as}}
module attributes {braid.settings = "strict"} {
}
