// RUN: %braid-opt %s --split-input-file --verify-diagnostics -p select-rematerialization,apply-rematerialization

func.func @infeasible(%x: tensor<16xf32>) -> tensor<16xf32> attributes {braid.rematerialization = {budget = "64B"}} {
  // expected-note@+1 {{the result of 'wide' takes 4096 bytes (4 KiB)}}
  %0 = braid.opaque "f"(%x) {braid.name = "wide", cost = 1.0 : f64} : (tensor<16xf32>) -> tensor<1024xf32>
  // expected-error@+2 {{a memory budget of 64 bytes (64 B) is infeasible: 4160 bytes are needed by 'narrow'}}
  // expected-note@+1 {{the result of 'narrow' takes 64 bytes (64 B)}}
  %1 = braid.opaque "f"(%0) {braid.name = "narrow", cost = 1.0 : f64} : (tensor<1024xf32>) -> tensor<16xf32>
  func.return %1 : tensor<16xf32>
}

// -----

// expected-error@+1 {{select-rematerialization was given no threshold and no budget}}
func.func @nothing(%x: tensor<16xf32>) -> tensor<16xf32> {
  func.return %x : tensor<16xf32>
}

// -----

// expected-error@+1 {{tensor-threshold: '64XB' is not a size}}
func.func @unit(%x: tensor<16xf32>) -> tensor<16xf32> attributes {braid.rematerialization = {tensor_threshold = "64XB"}} {
  func.return %x : tensor<16xf32>
}

// -----

// expected-error@+1 {{braid.rematerialization has entries ['threshold'], which mean nothing}}
func.func @unknown(%x: tensor<16xf32>) -> tensor<16xf32> attributes {braid.rematerialization = {threshold = 1 : i64}} {
  func.return %x : tensor<16xf32>
}

// -----

// expected-error@+1 {{a tensor has an open dim, tensor<?xf32>; its bytes are not known}}
func.func @open(%x: tensor<?xf32>) -> tensor<?xf32> attributes {braid.rematerialization = {jump_threshold = 1 : i64}} {
  %0 = braid.neg %x : (tensor<?xf32>) -> tensor<?xf32>
  func.return %0 : tensor<?xf32>
}
