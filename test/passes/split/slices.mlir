// RUN: %braid-opt %s -p 'select-splits{memory=100},apply-splits' | filecheck %s
// RUN: %braid-opt %s -p 'select-splits{memory=100 follow-readers},apply-splits{through-concats}' | filecheck %s --check-prefix=FOLLOW

// A reader of a slice of a split op is split in the same way, and reads a slice of each part.
// CHECK-LABEL: func.func @whole
// CHECK:         %[[A:.*]] = braid.pad {{.*}} -> tensor<6x2xf32>
// CHECK:         %[[B:.*]] = braid.pad {{.*}} -> tensor<6x2xf32>
// CHECK:         %[[C:.*]] = braid.pad {{.*}} -> tensor<6x2xf32>
// CHECK-NOT:     braid.concat
// CHECK:         braid.slice %[[A]] {offsets = array<i64: 1, 0>, sizes = array<i64: 4, 2>
// CHECK:         braid.neg {{.*}} -> tensor<4x2xf32>
// CHECK:         braid.slice %[[B]] {offsets = array<i64: 1, 0>
// CHECK:         braid.slice %[[C]] {offsets = array<i64: 1, 0>
// CHECK:         braid.concat
func.func @whole(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = braid.pad %x {low = array<i64: 2, 0>, high = array<i64: 0, 0>, value = 0.0 : f32} : (tensor<4x6xf32>) -> tensor<6x6xf32>
  %1 = braid.slice %0 {offsets = array<i64: 1, 0>, sizes = array<i64: 4, 6>, strides = array<i64: 1, 1>} : (tensor<6x6xf32>) -> tensor<4x6xf32>
  %2 = braid.neg %1 : (tensor<4x6xf32>) -> tensor<4x6xf32>
  func.return %2 : tensor<4x6xf32>
}

// If the slice cuts the parts, its reader is split along the dim that it prefers.
// CHECK-LABEL: func.func @cut
// CHECK-COUNT-3: braid.pad {{.*}} -> tensor<6x2xf32>
// CHECK:         %[[WHOLE:.*]] = braid.concat
// CHECK:         braid.slice %[[WHOLE]] {offsets = array<i64: 0, 1>, sizes = array<i64: 2, 5>
func.func @cut(%x: tensor<4x6xf32>) -> tensor<6x5xf32> {
  %0 = braid.pad %x {low = array<i64: 2, 0>, high = array<i64: 0, 0>, value = 0.0 : f32} : (tensor<4x6xf32>) -> tensor<6x6xf32>
  %1 = braid.slice %0 {offsets = array<i64: 0, 1>, sizes = array<i64: 6, 5>, strides = array<i64: 1, 1>} : (tensor<6x6xf32>) -> tensor<6x5xf32>
  %2 = braid.exp %1 : (tensor<6x5xf32>) -> tensor<6x5xf32>
  func.return %2 : tensor<6x5xf32>
}

// The pieces of a concatenation along another dim are read in place.
// FOLLOW-LABEL: func.func @joined
// FOLLOW:         %[[A:.*]] = braid.exp {{.*}} -> tensor<1x12xf32>
// FOLLOW:         %[[B:.*]] = braid.abs {{.*}} -> tensor<1x12xf32>
// FOLLOW:         %[[PART:.*]] = braid.concat %{{.*}}, %{{.*}} {dim = 0 : i64} : (tensor<1x6xf32>, tensor<1x6xf32>)
// FOLLOW:         braid.softmax %[[PART]] {{.*}}(tensor<2x6xf32>)
func.func @joined(%a: tensor<1x24xf32>, %b: tensor<1x24xf32>) -> tensor<2x24xf32> {
  %0 = braid.exp %a : (tensor<1x24xf32>) -> tensor<1x24xf32>
  %1 = braid.abs %b : (tensor<1x24xf32>) -> tensor<1x24xf32>
  %2 = braid.concat %0, %1 {dim = 0 : i64} : (tensor<1x24xf32>, tensor<1x24xf32>) -> tensor<2x24xf32>
  %3 = braid.softmax %2 {dim = 0 : i64} : (tensor<2x24xf32>) -> tensor<2x24xf32>
  func.return %3 : tensor<2x24xf32>
}
