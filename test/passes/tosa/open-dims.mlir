// RUN: %braid-opt %s -p 'name-open-dims,convert-tosa-to-braid' | filecheck %s

// A batch of any size: reshapes derive theirs, and an extent of 1 is repeated.
// CHECK-LABEL: @batch
// CHECK-SAME: -> (tensor<?x32xf32, #braid.sizes<["\22input0[0]\22"]>>, tensor<?x8xf32, #braid.sizes<["\22input0[0]\22"]>>)
// CHECK: braid.reshape %x {{.*}} -> tensor<?x32xf32, #braid.sizes<["\22input0[0]\22"]>>
// CHECK: braid.sized_slice {{.*}} sizes = #braid.sizes<["\22input0[0]\22", "8"]>
func.func @batch(%x: tensor<?x4x8xf32>, %b: tensor<1x32xf32>) -> (tensor<?x32xf32>, tensor<?x8xf32>) {
  %s = "tosa.const_shape"() <{values = dense<[-1, 32]> : tensor<2xindex>}> : () -> !tosa.shape<2>
  %y = "tosa.reshape"(%x, %s) : (tensor<?x4x8xf32>, !tosa.shape<2>) -> tensor<?x32xf32>
  %z = "tosa.add"(%y, %b) : (tensor<?x32xf32>, tensor<1x32xf32>) -> tensor<?x32xf32>
  %start = "tosa.const_shape"() <{values = dense<[0, 4]> : tensor<2xindex>}> : () -> !tosa.shape<2>
  %size = "tosa.const_shape"() <{values = dense<[-1, 8]> : tensor<2xindex>}> : () -> !tosa.shape<2>
  %p = "tosa.slice"(%z, %start, %size) : (tensor<?x32xf32>, !tosa.shape<2>, !tosa.shape<2>) -> tensor<?x8xf32>
  func.return %z, %p : tensor<?x32xf32>, tensor<?x8xf32>
}
