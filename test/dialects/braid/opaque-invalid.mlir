// RUN: %braid-opt %s --split-input-file --verify-diagnostics

func.func @negative(%x: tensor<4xf32>) {
  // expected-error @+1 {{a cost is -1.000000e+00 : f64, expected no negative number}}
  braid.opaque "a"(%x) {cost = -1.0 : f64} : (tensor<4xf32>) -> ()
  func.return
}

// -----

func.func @resource(%x: tensor<4xf32>) {
  // expected-error @+1 {{a cost is "fast", expected a number}}
  braid.opaque "a"(%x) {cost = {cpu = "fast"}} : (tensor<4xf32>) -> ()
  func.return
}

// -----

func.func @lacking(%x: tensor<4xf32>) {
  // expected-error @+1 {{a choice of layouts lacks the array 'operands'}}
  braid.opaque "a"(%x) {layouts = [{results = []}]} : (tensor<4xf32>) -> ()
  func.return
}

// -----

func.func @too_many(%x: tensor<4xf32>) {
  // expected-error @+1 {{2 layouts of operands, expected 1}}
  braid.opaque "a"(%x) {layouts = [{operands = ["l0", "l1"], results = []}]} : (tensor<4xf32>) -> ()
  func.return
}

// -----

func.func @layout(%x: tensor<4xf32>) {
  // expected-error @+1 {{'A' must have an inner block for each capital and no other}}
  braid.opaque "a"(%x) {layouts = [{operands = ["A"], results = []}]} : (tensor<4xf32>) -> ()
  func.return
}

// -----

func.func @field(%x: tensor<4xf32>) {
  // expected-error @+1 {{a choice of layouts has fields ['costs'], which mean nothing}}
  braid.opaque "a"(%x) {layouts = [{operands = ["l0"], results = [], costs = 1.0 : f64}]} : (tensor<4xf32>) -> ()
  func.return
}

// -----

func.func @sizes(%x: tensor<4xf32>) {
  // expected-error @+1 {{bytes has 1 entries, expected 0}}
  braid.opaque "a"(%x) {bytes = array<i64: 4>} : (tensor<4xf32>) -> ()
  func.return
}

// -----

func.func @no_layouts(%x: tensor<4xf32>) {
  // expected-error @+1 {{layouts is empty: no choice is left}}
  braid.opaque "a"(%x) {layouts = []} : (tensor<4xf32>) -> ()
  func.return
}

// -----

func.func @not_a_number(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected a finite number}}
  braid.opaque "a"(%x) {cost = 0x7FF8000000000000 : f64} : (tensor<4xf32>) -> ()
  func.return
}

// -----

func.func @infinite(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected a finite number}}
  braid.opaque "a"(%x) {layouts = [{operands = ["l0"], results = [], cost = {seconds = 0x7FF0000000000000 : f64}}]} : (tensor<4xf32>) -> ()
  func.return
}

// -----

func.func @misspelled(%x: tensor<4xf32>) {
  // expected-error @+1 {{the attribute 'layout' declares nothing; did you mean 'layouts'? Otherwise give it a namespace, such as 'my.layout'}}
  braid.opaque "a"(%x) {layout = [{operands = ["l0"], results = []}]} : (tensor<4xf32>) -> ()
  func.return
}

// -----

func.func @own(%x: tensor<4xf32>) {
  braid.opaque "a"(%x) {my.costs = 1.0 : f64, heads = 4 : i64, types = "f32"} : (tensor<4xf32>) -> ()
  // expected-error @+1 {{the attribute 'costs' declares nothing; did you mean 'cost'?}}
  braid.opaque "a"(%x) {costs = 1.0 : f64} : (tensor<4xf32>) -> ()
  func.return
}

// -----

func.func @rank(%x: tensor<4xf32>) {
  // expected-error @+1 {{layout 'acdb' does not fit tensor<4xf32> in rank}}
  braid.opaque "a"(%x) {layouts = [{operands = ["l0"], results = []}, {operands = ["NHWC"], results = []}]} : (tensor<4xf32>) -> ()
  func.return
}
