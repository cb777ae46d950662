// Lines that are equal, or nearly. Each part is read with and without fast paths;
// those at the end are wrong, and have to be wrong in the same words at the same place.

// Operands swapped.
func.func @f(%0: i32, %1: i32, %2: i64) {
  %3 = "a.b"(%0, %1) : (i32, i32) -> i32
  %4 = "a.b"(%1, %0) : (i32, i32) -> i32
  func.return
}

// -----

// Operand twice.
func.func @f(%0: i32, %1: i32, %2: i64) {
  %3 = "a.b"(%0, %0) : (i32, i32) -> i32
  %4 = "a.b"(%0, %1) : (i32, i32) -> i32
  func.return
}

// -----

// Other keys.
func.func @f(%0: i32, %1: i32, %2: i64) {
  "a.b"() {x = 1} : () -> ()
  "a.b"() {y = 1} : () -> ()
  "a.b"() {x = 2} : () -> ()
  func.return
}

// -----

// Properties.
func.func @f(%0: i32, %1: i32, %2: i64) {
  "a.b"() <{x = 1}> {y = 1} : () -> ()
  "a.b"() <{x = 2}> {y = 3} : () -> ()
  func.return
}

// -----

// Same key twice.
func.func @f(%0: i32, %1: i32, %2: i64) {
  "a.b"() <{x = 1}> {x = 1} : () -> ()
  "a.b"() <{x = 2}> {x = 3} : () -> ()
  func.return
}

// -----

// Brace in a string.
func.func @f(%0: i32, %1: i32, %2: i64) {
  "a.b"() {x = "{", y = "}"} : () -> ()
  "a.b"() {x = "}", y = "{"} : () -> ()
  func.return
}

// -----

// Percent in a string.
func.func @f(%0: i32, %1: i32, %2: i64) {
  "a.b"() {x = "%0"} : () -> ()
  "a.b"() {x = "%1"} : () -> ()
  func.return
}

// -----

// Dictionary in a type.
func.func @f(%0: i32, %1: i32, %2: i64) {
  %3 = "a.b"() : () -> tensor<4xf32, {x = 1}>
  %4 = "a.b"() : () -> tensor<4xf32, {x = 2}>
  func.return
}

// -----

// Both dictionaries.
func.func @f(%0: i32, %1: i32, %2: i64) {
  %3 = "a.b"() {x = 1} : () -> tensor<4xf32, {x = 1}>
  %4 = "a.b"() {x = 3} : () -> tensor<4xf32, {x = 2}>
  func.return
}

// -----

// Locations.
func.func @f(%0: i32, %1: i32, %2: i64) {
  "a.b"() : () -> () loc("f":1:2)
  "a.b"() : () -> () loc("g":3:4)
  "a.b"() : () -> ()
  func.return
}

// -----

// Other locations.
func.func @f(%0: i32, %1: i32, %2: i64) {
  "a.b"() : () -> () loc("f")
  "a.b"() : () -> () loc("g")
  "a.b"() : () -> () loc(unknown)
  func.return
}

// -----

// Many results.
func.func @f(%0: i32, %1: i32, %2: i64) {
  %3:2 = "a.b"() : () -> (i32, i32)
  %4:2 = "a.b"() : () -> (i32, i32)
  "c.d"(%4#1) : (i32) -> ()
  func.return
}

// -----

// Results split.
func.func @f(%0: i32, %1: i32, %2: i64) {
  %3:2, %x = "a.b"() : () -> (i32, i32, i1)
  %4, %5:2 = "a.b"() : () -> (i32, i32, i1)
  func.return
}

// -----

// Forward.
func.func @f(%0: i32, %1: i32, %2: i64) {
  "a.b"(%0) : (i32) -> ()
  "a.b"(%9) : (i32) -> ()
  %9 = "c.d"() : () -> i32
  func.return
}

// -----

// Names.
func.func @f(%0: i32, %1: i32, %2: i64) {
  %x_1 = "a.b"() : () -> i32
  %x_2 = "a.b"() : () -> i32
  %7 = "a.b"() : () -> i32
  func.return
}

// -----

// Over two lines.
func.func @f(%0: i32, %1: i32, %2: i64) {
  "a.b"() : () -> ()
  "a.b"()
  : () -> ()
  "a.b"() : () -> ()
  func.return
}

// -----

// Comments.
func.func @f(%0: i32, %1: i32, %2: i64) {
  "a.b"() : () -> () // {x
  "a.b"() {
  // }
  x} : () -> ()
  "a.b"() : () -> () // {x
  func.return
}

// -----

// Literals.
func.func @f(%0: i32, %1: i32, %2: i64) {
  "a.b"() {a = 1 : i32, b = -2.5e-3, c = [1, "s", {d}], e = array<i32: 1>, g = @f, h = f32, i = true, j = dense<1> : tensor<2xi8>, k = 3 : index, l = [], m = 0x1F, n = 1.0 : f16}: () -> ()
  func.return
}

// -----

// Regions in between.
func.func @f(%0: i32, %1: i32, %2: i64) {
  "a.b"() : () -> ()
  "a.b"() ({ "c.d"() : () -> () }) : () -> ()
  "a.b"() : () -> ()
  func.return
}

// -----

// Wrong type.
func.func @f(%0: i32, %1: i32, %2: i64) {
  "a.b"(%0) : (i32) -> ()
  "a.b"(%2) : (i32) -> ()
  func.return
}

// -----

// Undefined.
func.func @f(%0: i32, %1: i32, %2: i64) {
  "a.b"(%0) : (i32) -> ()
  "a.b"(%8) : (i32) -> ()
  func.return
}

// -----

// Defined twice.
func.func @f(%0: i32, %1: i32, %2: i64) {
  %3 = "a.b"() : () -> i32
  %3 = "a.b"() : () -> i32
  func.return
}

// -----

// Too few results.
func.func @f(%0: i32, %1: i32, %2: i64) {
  %3 = "a.b"() : () -> (i32)
  %4:2 = "a.b"() : () -> (i32)
  func.return
}

// -----

// Key twice.
func.func @f(%0: i32, %1: i32, %2: i64) {
  "a.b"() {x = 1} : () -> ()
  "a.b"() {x = 1, x = 2} : () -> ()
  func.return
}

// -----

// Wrong number.
func.func @f(%0: i32, %1: i32, %2: i64) {
  "a.b"() {x = 1 : i32} : () -> ()
  "a.b"() {x = 300 : i8} : () -> ()
  func.return
}

// -----

// Float for an integer.
func.func @f(%0: i32, %1: i32, %2: i64) {
  "a.b"() {x = 1.5 : i32} : () -> ()
  func.return
}

// -----

// Unclosed dictionary.
func.func @f(%0: i32, %1: i32, %2: i64) {
  "a.b"() {x = 1 : i32} : () -> ()
  "a.b"() {x = 1 : () -> ()
  func.return
}

// -----

// Commas.
func.func @f(%0: i32, %1: i32, %2: i64) {
  "a.b"() {x = [1,, 2]} : () -> ()
  func.return
}

// -----

// Strings.
func.func @f(%0: i32, %1: i32, %2: i64) {
  "a.b"() {x = ["a" "b"]} : () -> ()
  func.return
}

// -----

// Terminators without the name of their dialect.
func.func @f(%0: i32) -> i32 {
  return %0 : i32
}
func.func @g(%0: i32) -> i32 {
  return %0 : i32
}

// -----

// A name alone, of an op that may have operands.
func.func @f() {
  func.return
  func.return
  %0 = "a.b"() : () -> i32
  func.return
}

// -----

// Values without a name.
func.func @f(%0: i32) -> i32 {
  "a.b"(%0) : (i32) -> ()
  "a.b"(%) : (i32) -> ()
  func.return %0 : i32
}
