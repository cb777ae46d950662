"""The functions LLVM calls to convert 16-bit floats where the CPU cannot; few systems have all.

`arith-expand` does not expand conversions of f16, nor those to bf16 that MLIR merged from two
before it (from integers by way of f32). Halves are rounded to even, NaN stay NaN.
"""

_TO_BFLOAT = """
define weak hidden bfloat @__truncsfbf2(float %x) {
  %bits = bitcast float %x to i32
  %high = lshr i32 %bits, 16
  %odd = and i32 %high, 1
  %up = add i32 %odd, 32767
  %sum = add i32 %bits, %up
  %number = fcmp ord float %x, %x
  %quiet = or i32 %bits, 4194304
  %chosen = select i1 %number, i32 %sum, i32 %quiet
  %kept = lshr i32 %chosen, 16
  %half = trunc i32 %kept to i16
  %result = bitcast i16 %half to bfloat
  ret bfloat %result
}
"""

_TO_HALF = """
define weak hidden half @__truncsfhf2(float %x) {
  %bits = bitcast float %x to i32
  %sign = lshr i32 %bits, 16
  %top = and i32 %sign, 32768
  %rest = and i32 %bits, 2147483647
  ; 65536 and above, and what is no number
  %is_large = icmp uge i32 %rest, 1199570944
  %is_nan = icmp ugt i32 %rest, 2139095040
  %shifted = lshr i32 %rest, 13
  %payload = and i32 %shifted, 1023
  %quiet = or i32 %payload, 32256
  %large = select i1 %is_nan, i32 %quiet, i32 31744
  ; below 2^-14: adding 0.5 rounds at the last bit that f16 has
  %is_small = icmp ult i32 %rest, 947912704
  %magnitude = bitcast i32 %rest to float
  %moved = fadd float %magnitude, 0x3FE0000000000000
  %moved_bits = bitcast float %moved to i32
  %small = sub i32 %moved_bits, 1056964608
  ; another exponent, and half of the last bit
  %odd = and i32 %shifted, 1
  %biased = sub i32 %rest, 939524096
  %up = add i32 %odd, 4095
  %sum = add i32 %biased, %up
  %normal = lshr i32 %sum, 13
  %inside = select i1 %is_small, i32 %small, i32 %normal
  %chosen = select i1 %is_large, i32 %large, i32 %inside
  %signed = or i32 %chosen, %top
  %half = trunc i32 %signed to i16
  %result = bitcast i16 %half to half
  ret half %result
}
"""

_FROM_HALF = """
define weak hidden float @__extendhfsf2(half %x) {
  %half = bitcast half %x to i16
  %bits = zext i16 %half to i32
  %top = and i32 %bits, 32768
  %sign = shl i32 %top, 16
  %rest = and i32 %bits, 32767
  %shifted = shl i32 %rest, 13
  %normal = add i32 %shifted, 939524096
  %is_large = icmp uge i32 %rest, 31744
  %infinite = or i32 %shifted, 2139095040
  %is_nan = icmp ugt i32 %rest, 31744
  %quiet = or i32 %infinite, 4194304
  %large = select i1 %is_nan, i32 %quiet, i32 %infinite
  ; below 2^-14: multiples of 2^-24
  %is_small = icmp ult i32 %rest, 1024
  %count = uitofp i32 %rest to float
  %scaled = fmul float %count, 0x3E70000000000000
  %small = bitcast float %scaled to i32
  %inside = select i1 %is_small, i32 %small, i32 %normal
  %chosen = select i1 %is_large, i32 %large, i32 %inside
  %signed = or i32 %chosen, %sign
  %result = bitcast i32 %signed to float
  ret float %result
}
"""

_TO_ODD = """
; To 24 bits, the last of which is set where something is lost: rounded once more, to 11 bits or 8,
; that gives what one rounding would (Boldo and Melquiond, "Emulation of FMA and correctly rounded
; sums: proved algorithms using rounding to odd", 2008).
define weak hidden float @braid_round_to_odd(double %x) {
  %near = fptrunc double %x to float
  %back = fpext float %near to double
  %exact = fcmp ueq double %back, %x
  %bits = bitcast float %near to i32
  %back_bits = bitcast double %back to i64
  %x_bits = bitcast double %x to i64
  %back_rest = and i64 %back_bits, 9223372036854775807
  %x_rest = and i64 %x_bits, 9223372036854775807
  %is_beyond = icmp ugt i64 %back_rest, %x_rest
  %one_less = sext i1 %is_beyond to i32
  %cut = add i32 %bits, %one_less
  %odd = or i32 %cut, 1
  %chosen = select i1 %exact, i32 %bits, i32 %odd
  %result = bitcast i32 %chosen to float
  ret float %result
}
"""

_DOUBLE_TO = """
define weak hidden {type} @__truncdf{letter}f2(double %x) {{
  %odd = call float @braid_round_to_odd(double %x)
  %result = call {type} @__truncsf{letter}f2(float %odd)
  ret {type} %result
}}
"""

_FUNCTIONS = {"bfloat": (_TO_BFLOAT,), "half": (_TO_HALF, _FROM_HALF)}
_LETTERS = {"bfloat": "b", "half": "h"}


def with_conversions(llvm_ir: str) -> str:
    """Return `llvm_ir` with the functions that the types in it may need."""
    types = [type for type in _FUNCTIONS if type in llvm_ir]
    needed = [text for type in types for text in _FUNCTIONS[type]]
    if types and "double" in llvm_ir:
        needed.append(_TO_ODD)
        needed += [_DOUBLE_TO.format(type=type, letter=_LETTERS[type]) for type in types]
    return llvm_ir + "".join(needed)
