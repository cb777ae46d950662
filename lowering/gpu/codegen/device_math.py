"""Elementary functions for GPUs in LLVM IR, under the names that upstream calls (`__nv_expf`, …).

They need nothing of CUDA, and the emulator runs the same code. In f32, log, tanh near 0, sin and
cos are Cephes's polynomials (S. Moshier; logf.c, tanhf.c, sinf.c), exp and the rest of tanh are the
GPU's power of two, and erf is Eigen's quotient (`generic_fast_erf_float`): within 5 ulp, erf within
6, with what the PTX ISA allows the GPU's instructions to be off by. The others are computed in f64
and rounded. In f64 they are series after the usual reductions, within 16 ulp; pow within that times
1 + |y · log x|, and sin, cos and tan for |x| up to 1e6, beyond which the error grows with x;
sin and cos stay within -1 and 1.
`test_device_math.py` measures all of it.
"""

from collections.abc import Sequence

from braid.lowering.gpu.codegen.double_functions import DOUBLE, Body
from braid.lowering.gpu.codegen.ir_writer import FunctionWriter, Value
from braid.lowering.gpu.codegen.single_functions import SINGLE
from braid.support.errors import UnsupportedError

_INTRINSICS = {
    "sqrt": (1, "sqrt"),
    "fabs": (1, "fabs"),
    "floor": (1, "floor"),
    "ceil": (1, "ceil"),
    "trunc": (1, "trunc"),
    "rint": (1, "rint"),
    "copysign": (2, "copysign"),
    "fma": (3, "fma"),
    "fmin": (2, "minnum"),
    "fmax": (2, "maxnum"),
}
"""Functions that are instructions: how many operands, and LLVM's name."""

_REMAINDER = """
define internal double @__nv_fmod(double %x, double %y) alwaysinline nounwind {
entry:
  %ax = call double @llvm.fabs.f64(double %x)
  %ay = call double @llvm.fabs.f64(double %y)
  %xfinite = fcmp olt double %ax, 0x7FF0000000000000
  %ydivides = fcmp ogt double %ay, 0.0
  %defined = and i1 %xfinite, %ydivides
  %ybits = bitcast double %ay to i64
  %yexponent = and i64 %ybits, 9218868437227405312
  br i1 %defined, label %loop, label %undefined
loop:
  %r = phi double [ %ax, %entry ], [ %next, %step ]
  %again = fcmp oge double %r, %ay
  br i1 %again, label %step, label %done
step:
  %rbits = bitcast double %r to i64
  %rexponent = and i64 %rbits, 9218868437227405312
  %shift = sub i64 %rexponent, %yexponent
  %tbits = add i64 %ybits, %shift
  %t = bitcast i64 %tbits to double
  %above = fcmp ogt double %t, %r
  %half = fmul double %t, 5.0e-01
  %taken = select i1 %above, double %half, double %t
  %next = fsub double %r, %taken
  br label %loop
done:
  %signed = call double @llvm.copysign.f64(double %r, double %x)
  ret double %signed
undefined:
  ret double 0x7FF8000000000000
}
define internal float @__nv_fmodf(float %x, float %y) alwaysinline nounwind {
  %wx = fpext float %x to double
  %wy = fpext float %y to double
  %r = call double @__nv_fmod(double %wx, double %wy)
  %s = fptrunc double %r to float
  ret float %s
}
"""
"""The rest of a division, exactly, by shifts and subtractions; of normal numbers."""
_ANGLE = """
define internal float @__nv_{name}f(float %x) alwaysinline nounwind {{
  %size = call float @llvm.fabs.f32(float %x)
  %usual = fcmp ole float %size, 1.0e6
  br i1 %usual, label %near, label %far
near:
  %n = call float @__nv_near_{name}f(float %x)
  ret float %n
far:
  %f = call float @__nv_far_{name}f(float %x)
  ret float %f
}}
define internal float @__nv_far_{name}f(float %x) noinline nounwind {{
  %w = fpext float %x to double
  %r = call double @__nv_{name}(double %w)
  %s = fptrunc double %r to float
  ret float %s
}}
"""
"""Sine or cosine: angles that f32 cannot reduce are left to f64."""
_ANGLES = {f"__nv_{name}f": name for name in ("sin", "cos")}
_REMAINDERS = ("__nv_fmod", "__nv_fmodf")
_REMAINDER_CALLS = ("fabs.f64(double)", "copysign.f64(double, double)")


def definitions(names: Sequence[str]) -> str:
    """Return LLVM IR that defines the functions of these names, and their callees, for linking.

    Raises UnsupportedError for a function that GPUs have no code for.
    """
    texts: dict[str, str] = {}
    waiting = list(names)
    declared: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in texts:
            continue
        if name in _REMAINDERS:
            texts |= {_REMAINDERS[0]: "", _REMAINDERS[1]: _REMAINDER}
            declared |= {f"declare double @llvm.{one}" for one in _REMAINDER_CALLS}
            continue
        if (angle := _ANGLES.get(name)) is not None:
            texts[name] = _ANGLE.format(name=angle)
            declared.add("declare float @llvm.fabs.f32(float)")
            waiting += [f"__nv_near_{angle}f", f"__nv_{angle}"]
            continue
        writer = _define(name)
        texts[name] = writer.text()
        declared |= writer.intrinsics
        waiting += sorted(writer.called)
    return "\n".join([*sorted(declared), *(texts[name] for name in sorted(texts))])


def _define(name: str) -> FunctionWriter:
    base = name.removeprefix("__nv_")
    single = base.endswith("f") and base[:-1] in {**DOUBLE, **SINGLE, **_INTRINSICS}
    own = base[:-1] if single else base
    if own in _INTRINSICS:
        count, intrinsic = _INTRINSICS[own]
        return _function(name, count, single, lambda w, x: w.intrinsic(intrinsic, *x))
    if single and own in SINGLE:
        return _function(name, 1, True, SINGLE[own])
    if own not in DOUBLE:
        raise UnsupportedError(f"GPUs have no code for the function '{base}'")
    count, body = DOUBLE[own]
    if not single:
        return _function(name, count, False, body)
    return _function(name, count, True, lambda w, x: _by_double(w, own, x))


def _function(name: str, count: int, single: bool, body: Body) -> FunctionWriter:
    writer = FunctionWriter(name, "float" if single else "double", count)
    writer.finish(body(writer, writer.arguments))
    return writer


def _by_double(w: FunctionWriter, own: str, x: Sequence[Value]) -> Value:
    wide = [w.cast("fpext", value, "double") for value in x]
    return w.cast("fptrunc", w.call(f"__nv_{own}", "double", *wide), "float")
