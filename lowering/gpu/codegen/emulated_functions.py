"""Instructions of GPUs that compute one f32, in LLVM IR for the CPU.

Approximate instructions are rounded correctly here; subnormal operands and results are flushed to
zero if the instruction says so (`ftz`).
"""

_FLUSHED = """define internal float @{name}.flushed(float %x) alwaysinline {{
  %size = call float @llvm.fabs.f32(float %x)
  %tiny = fcmp olt float %size, 0x3810000000000000
  %zero = call float @llvm.copysign.f32(float 0.0, float %x)
  %y = select i1 %tiny, float %zero, float %x
  ret float %y
}}"""

_UNARY = """define internal float @{name}(float %given) alwaysinline {{
  %x = call float @{name}.flushed(float %given)
  %r = {body}
  %y = call float @{name}.flushed(float %r)
  ret float %y
}}"""

_DIVIDE = """define internal float @{name}(float %x, float %y) alwaysinline {{
  %r = fdiv float %x, %y
  ret float %r
}}"""

_FMA_SATURATED = """define internal float @{name}(float %a, float %b, float %c) alwaysinline {{
  %r = call float @llvm.fma.f32(float %a, float %b, float %c)
  %above = fcmp ogt float %r, 0.0
  %low = select i1 %above, float %r, float 0.0
  %below = fcmp olt float %low, 1.0
  %y = select i1 %below, float %low, float 1.0
  ret float %y
}}"""

_FMA_DOWN = """define internal float @{name}(float %a, float %b, float %c) alwaysinline {{
  %wa = fpext float %a to double
  %wb = fpext float %b to double
  %wc = fpext float %c to double
  %p = fmul double %wa, %wb
  %s = fadd double %p, %wc
  %back = fsub double %s, %p
  %own = fsub double %s, %back
  %lostp = fsub double %p, %own
  %lostc = fsub double %wc, %back
  %lost = fadd double %lostp, %lostc
  %near = fptrunc double %s to float
  %wide = fpext float %near to double
  %above = fcmp ogt double %wide, %s
  %same = fcmp oeq double %wide, %s
  %less = fcmp olt double %lost, 0.0
  %short = and i1 %same, %less
  %down = or i1 %above, %short
  %bits = bitcast float %near to i32
  %positive = icmp sgt i32 %bits, 0
  %step = select i1 %positive, i32 -1, i32 1
  %nextbits = add i32 %bits, %step
  %next = bitcast i32 %nextbits to float
  %r = select i1 %down, float %next, float %near
  ret float %r
}}"""
"""The sum's error in f64 (D. Knuth's two-sum) says on which side of it the exact sum is."""

_BODIES = {
    "ex2.approx.ftz.f32": (_FLUSHED + "\n" + _UNARY, "call float @llvm.exp2.f32(float %x)"),
    "rcp.approx.ftz.f": (_FLUSHED + "\n" + _UNARY, "fdiv float 1.0, %x"),
    "div.full": (_DIVIDE, ""),
    "fma.rn.sat.f": (_FMA_SATURATED, ""),
    "fma.rm.f": (_FMA_DOWN, ""),
}
INTRINSICS = tuple(
    f"declare float @llvm.{name}.f32({', '.join(['float'] * count)})"
    for name, count in (("fabs", 1), ("copysign", 2), ("exp2", 1), ("fma", 3))
)
"""The declarations of the LLVM intrinsics that the definitions call."""


EMULATED_FUNCTIONS = frozenset(_BODIES)


def emulated_function(intrinsic: str, name: str) -> str | None:
    """Return the definition, as `name`, of an intrinsic without `llvm.nvvm.`; None for all
    others.
    """
    if intrinsic not in _BODIES:
        return None
    text, body = _BODIES[intrinsic]
    return text.format(name=name, body=body)
