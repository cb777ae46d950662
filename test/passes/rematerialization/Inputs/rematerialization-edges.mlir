// Edges between a producer and a reader, of which each satisfies some of the criteria
// tensor-threshold=4KiB, peak-threshold=8KiB, jump-threshold=3KiB, fusion-rules=default.

// tensor
func.func @large(%x: tensor<2048xf32>) -> tensor<64xf32> {
  %0 = braid.opaque "foreign"(%x) {braid.name = "large"} : (tensor<2048xf32>) -> tensor<2048xf32>
  %1 = braid.opaque "foreign"(%0) {braid.name = "large_end"} : (tensor<2048xf32>) -> tensor<64xf32>
  func.return %1 : tensor<64xf32>
}

// peak, and fusion because of the indirect path
func.func @skip(%x: tensor<256xf32>) -> tensor<64xf32> {
  %0 = braid.opaque "foreign"(%x) {braid.name = "skip"} : (tensor<256xf32>) -> tensor<256xf32>
  %1 = braid.opaque "foreign"(%0) {braid.name = "m1"} : (tensor<256xf32>) -> tensor<768xf32>
  %2 = braid.opaque "foreign"(%0) {braid.name = "m2"} : (tensor<256xf32>) -> tensor<768xf32>
  %3 = braid.opaque "foreign"(%0) {braid.name = "m3"} : (tensor<256xf32>) -> tensor<768xf32>
  %4 = braid.opaque "foreign"(%1, %2, %3) {braid.name = "join"} : (tensor<768xf32>, tensor<768xf32>, tensor<768xf32>) -> tensor<64xf32>
  %5 = braid.opaque "foreign"(%4, %0) {braid.name = "skip_end"} : (tensor<64xf32>, tensor<256xf32>) -> tensor<64xf32>
  func.return %5 : tensor<64xf32>
}

// fusion because of the indirect path; the peak is low
func.func @calm(%x: tensor<256xf32>) -> tensor<64xf32> {
  %0 = braid.opaque "foreign"(%x) {braid.name = "calm"} : (tensor<256xf32>) -> tensor<256xf32>
  %1 = braid.opaque "foreign"(%0) {braid.name = "calm_mid"} : (tensor<256xf32>) -> tensor<256xf32>
  %2 = braid.opaque "foreign"(%1, %0) {braid.name = "calm_end"} : (tensor<256xf32>, tensor<256xf32>) -> tensor<64xf32>
  func.return %2 : tensor<64xf32>
}

// jump
func.func @jump(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = braid.opaque "foreign"(%x) {braid.name = "jump"} : (tensor<64xf32>) -> tensor<1024xf32>
  %1 = braid.opaque "foreign"(%0) {braid.name = "jump_end"} : (tensor<1024xf32>) -> tensor<64xf32>
  func.return %1 : tensor<64xf32>
}

// fusion because of a rule
func.func @fusible(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = braid.opaque "elementwise"(%x) {braid.name = "fusible"} : (tensor<64xf32>) -> tensor<64xf32>
  %1 = braid.opaque "elementwise"(%0) {braid.name = "fusible_end"} : (tensor<64xf32>) -> tensor<64xf32>
  func.return %1 : tensor<64xf32>
}

// For the middle tensor alone; for the end tensor (without peak-threshold) and fusion, not peak.
func.func @large_calm(%x: tensor<1280xf32>) -> tensor<64xf32> {
  %0 = braid.opaque "foreign"(%x) {braid.name = "large_calm"} : (tensor<1280xf32>) -> tensor<1280xf32>
  %1 = braid.opaque "foreign"(%0) {braid.name = "large_calm_mid"} : (tensor<1280xf32>) -> tensor<64xf32>
  %2 = braid.opaque "foreign"(%1, %0) {braid.name = "large_calm_end"} : (tensor<64xf32>, tensor<1280xf32>) -> tensor<64xf32>
  func.return %2 : tensor<64xf32>
}

// For the middle tensor alone; for the end tensor (without peak-threshold), peak and fusion.
func.func @large_high(%x: tensor<1280xf32>) -> tensor<64xf32> {
  %0 = braid.opaque "foreign"(%x) {braid.name = "large_high"} : (tensor<1280xf32>) -> tensor<1280xf32>
  %1 = braid.opaque "foreign"(%0) {braid.name = "large_high_mid"} : (tensor<1280xf32>) -> tensor<1024xf32>
  %2 = braid.opaque "foreign"(%1, %0) {braid.name = "large_high_end"} : (tensor<1024xf32>, tensor<1280xf32>) -> tensor<64xf32>
  func.return %2 : tensor<64xf32>
}

// tensor and jump
func.func @large_jump(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = braid.opaque "foreign"(%x) {braid.name = "large_jump"} : (tensor<64xf32>) -> tensor<2048xf32>
  %1 = braid.opaque "foreign"(%0) {braid.name = "large_jump_end"} : (tensor<2048xf32>) -> tensor<64xf32>
  func.return %1 : tensor<64xf32>
}

// tensor, jump and fusion
func.func @fusible_jump(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = braid.opaque "elementwise"(%x) {braid.name = "fusible_jump"} : (tensor<64xf32>) -> tensor<2048xf32>
  %1 = braid.opaque "elementwise"(%0) {braid.name = "fusible_jump_end"} : (tensor<2048xf32>) -> tensor<64xf32>
  func.return %1 : tensor<64xf32>
}

// For the middle tensor and jump; for the end all four.
func.func @every(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = braid.opaque "foreign"(%x) {braid.name = "every"} : (tensor<64xf32>) -> tensor<2048xf32>
  %1 = braid.opaque "foreign"(%0) {braid.name = "every_mid"} : (tensor<2048xf32>) -> tensor<256xf32>
  %2 = braid.opaque "foreign"(%1, %0) {braid.name = "every_end"} : (tensor<256xf32>, tensor<2048xf32>) -> tensor<64xf32>
  func.return %2 : tensor<64xf32>
}
