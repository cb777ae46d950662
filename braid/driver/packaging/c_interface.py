"""A C interface made for one model: its header, and the source that implements it."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from string import Template

from braid.runtime.buffers import describe_shape
from braid.runtime.dtypes import numpy_dtype
from braid.runtime.manifest import DimSpec, TensorSpec

_TYPES = {
    "float32": "float",
    "float64": "double",
    "bool": "bool",
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
_BITS = {1: "uint8_t", 2: "uint16_t"}
"""For types that C does not have: their bits."""

_KEYWORDS = re.compile(
    "auto|bool|break|case|char|class|const|continue|default|delete|do|double|else|enum|extern|"
    "false|float|for|goto|if|inline|int|long|namespace|new|operator|private|public|register|"
    "restrict|return|short|signed|sizeof|static|struct|switch|template|this|true|typedef|union|"
    "unsigned|using|virtual|void|volatile|while"
)

_HEADER = Template("""\
/* $model, compiled by $builder.
 *
 * Link with the shared object beside this file, which needs nothing of braid to run. Tensors are
 * row-major and dense. A context serves one thread at a time.
 */
#ifndef ${p}_H
#define ${p}_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
$dims
typedef struct ${p}_inputs {
$inputs
} ${p}_inputs;

typedef struct ${p}_outputs {
$outputs
} ${p}_outputs;

typedef struct ${p}_context ${p}_context;

/* Bytes of each tensor. */
$bytes

/* Makes a context that runs on `threads` threads (0: all); NULL on failure. */
${p}_context *${p}_create(int64_t threads);

/* Runs the model; 0 on success. $results */
$run;

/* Sizes of the output of that number, counted from 0, after a run. */
const int64_t *${p}_output_shape(${p}_context *context, int64_t output);

/* Why the calling thread's last call failed. */
const char *${p}_error(void);

/* Frees a context. NULL is allowed. */
void ${p}_destroy(${p}_context *context);

#ifdef __cplusplus
}
#endif

#endif /* ${p}_H */
""")

_SOURCE = Template("""\
#include "$p.h"

#include <braid/runtime.h>

extern const braid_model_v2 braid_model;
extern const char braid_weights[], braid_weights_end[];

${p}_context *${p}_create(int64_t threads) {
  size_t bytes = (size_t)(braid_weights_end - braid_weights);
  braid_model_t *model = braid_model_from_descriptor(&braid_model, braid_weights, bytes);
  braid_context_t *context = model ? braid_context_create(model, threads) : NULL;
  braid_model_close(model); /* the context keeps it */
  return (${p}_context *)context;
}

$set_shapes
$run {
  void *in[] = {$inputs};
  braid_context_t *own = (braid_context_t *)context;
$shapes
$finish
}

$bytes
const int64_t *${p}_output_shape(${p}_context *context, int64_t output) {
  return braid_context_output_shape((braid_context_t *)context, output);
}

const char *${p}_error(void) { return braid_last_error(); }

void ${p}_destroy(${p}_context *context) { braid_context_close((braid_context_t *)context); }
""")


_OWNED = (
    "Sets `outputs` to where results are until the next run. Only\n"
    " * an input without elements may be NULL."
)


def identifier(name: str) -> str:
    """Return a C and C++ identifier made of a name: other characters become `_`."""
    text = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
    return f"m_{text}" if not text or text[0].isdigit() or _KEYWORDS.fullmatch(text) else text


def identifiers(names: Iterable[str]) -> list[str]:
    """Return identifiers for the names in order, no two of them equal."""
    taken: dict[str, None] = {}
    for name in names:
        unique, count = identifier(name), 1
        while unique in taken:
            count += 1
            unique = f"{identifier(name)}_{count}"
        taken[unique] = None
    return list(taken)


@dataclass(frozen=True)
class CInterface:
    """Functions and types whose names start with `prefix`, for a model with these ports.

    If data decide sizes, a run sets the pointers of its outputs, which the context owns.
    """

    prefix: str
    model: str
    builder: str
    inputs: Sequence[TensorSpec]
    outputs: Sequence[TensorSpec]
    dims: Sequence[DimSpec]
    output_shapes: Sequence[Sequence[str]] = ()
    decides_sizes: bool = False

    @cached_property
    def _names(self) -> list[str]:
        return identifiers(port.name for port in (*self.inputs, *self.outputs))

    @cached_property
    def _dim_names(self) -> dict[str, str]:
        names = [dim.name for dim in self.dims]
        return dict(zip(names, identifiers(names), strict=True))

    def header(self) -> str:
        """Return the text of the header."""
        ports = list(zip((*self.inputs, *self.outputs), self._names, strict=True))
        count = len(self.inputs)
        sized = ports[:count] if self.decides_sizes else ports
        qualifier = "const " if self.decides_sizes else ""
        return _HEADER.substitute(
            p=self.prefix,
            model=self.model.replace("*/", "* /"),
            builder=self.builder,
            dims=self._dims_struct(),
            inputs="\n".join(_field(port, name, "const ") for port, name in ports[:count]),
            outputs="\n".join(
                _field(port, name, qualifier, sizes)
                for (port, name), sizes in zip(
                    ports[count:], self.output_shapes or ((),) * len(self.outputs), strict=True
                )
            ),
            bytes="\n".join(self._bytes(port, name) for port, name in sized),
            run=self._run_declaration(),
            results=_OWNED if self.decides_sizes else "Only a tensor without elements may be NULL.",
        )

    def source(self) -> str:
        """Return the text of the source, which needs `braid/runtime.h` and the header."""
        count = len(self.inputs)
        # The runtime refuses NULL by the tensor's name.
        inputs = [f"inputs ? (void *)inputs->{name} : NULL" for name in self._names[:count]]
        return _SOURCE.substitute(
            p=self.prefix,
            run=self._run_declaration(),
            inputs=", ".join(inputs or ["NULL"]),
            finish=self._finish(),
            set_shapes=self._shapes_function(),
            shapes="  if (set_shapes(own, dims) != 0)\n    return 1;" if self.dims else "",
            bytes="\n".join(map(self._bytes_function, self._computed())),
        )

    def _dims_struct(self) -> str:
        if not self.dims:
            return ""
        fields = (f"  int64_t {self._dim_names[d.name]}; /* {_sizes(d)} */" for d in self.dims)
        return "\n".join(
            ("", f"typedef struct {self.prefix}_dims {{", *fields, f"}} {self.prefix}_dims;", "")
        )

    def _run_declaration(self) -> str:
        p = self.prefix
        dims = f"const {p}_dims *dims, " if self.dims else ""
        outputs = f"{p}_outputs" if self.decides_sizes else f"const {p}_outputs"
        return (
            f"int {p}_run({p}_context *context, {dims}const {p}_inputs *inputs,\n"
            f"    {outputs} *outputs)"
        )

    def _finish(self) -> str:
        """Return the end of a run: its results are written, or where they are is."""
        names = self._names[len(self.inputs) :]
        if not self.decides_sizes:
            given = [f"outputs ? outputs->{name} : NULL" for name in names]
            listed = ", ".join(given or ["NULL"])
            return f"  void *out[] = {{{listed}}};\n  return braid_context_run(own, in, out);"
        lines = ["  if (braid_context_run(own, in, NULL) != 0)", "    return 1;"]
        lines.append("  if (outputs == NULL)\n    return 0;")
        for number, name in enumerate(names):
            lines.append(f"  outputs->{name} = braid_context_output(own, {number});")
        return "\n".join([*lines, "  return 0;"])

    def _shapes_function(self) -> str:
        if not self.dims:
            return ""
        head = f"static int set_shapes(braid_context_t *own, const {self.prefix}_dims *dims) {{"
        return "\n".join((head, *self._set_shapes(), "  return 0;", "}", ""))

    def _set_shapes(self) -> list[str]:
        lines: list[str] = []
        for index, spec in enumerate(self.inputs):
            if any(spec.dims):
                sizes = ", ".join(self._extents(spec, "(dims ? dims->{} : 0)"))
                lines += [
                    f"  const int64_t shape_{index}[] = {{{sizes}}};",
                    f"  if (braid_context_set_input_shape(own, {index}, "
                    f"dims ? shape_{index} : NULL) != 0)",
                    "    return 1;",
                ]
        return lines

    def _extents(self, spec: TensorSpec, dim: str = "dims->{}") -> list[str]:
        """Return text of the size of each dim; `dim` is the name of an open dim."""
        names = spec.dims or ("",) * len(spec.bound)
        return [
            dim.format(self._dim_names[name]) if name else str(bound)
            for name, bound in zip(names, spec.bound, strict=True)
        ]

    def _computed(self) -> list[int]:
        """Return the outputs whose sizes the runtime computes: more than dims of the model."""
        if self.decides_sizes:
            return []
        return [number for number, spec in enumerate(self.outputs) if self._is_computed(spec)]

    def _is_computed(self, spec: TensorSpec) -> bool:
        names = spec.dims or ("",) * len(spec.shape)
        pairs = zip(spec.shape, names, strict=True)
        return bool(self.output_shapes) and any(size < 0 and not name for size, name in pairs)

    def _bytes_head(self, name: str) -> str:
        p = self.prefix
        return f"int64_t {p}_{name}_bytes({p}_context *context, const {p}_dims *dims)"

    def _bytes_function(self, number: int) -> str:
        spec, name = self.outputs[number], self._names[len(self.inputs) + number]
        factors = [f"shape[{d}]" for d in range(len(spec.shape))]
        return "\n".join(
            (
                f"{self._bytes_head(name)} {{",
                "  braid_context_t *own = (braid_context_t *)context;",
                "  const int64_t *shape = NULL;",
                "  if (set_shapes(own, dims) == 0)",
                f"    shape = braid_context_output_shape(own, {number});",
                f"  return shape == NULL ? -1 : "
                f"{' * '.join([str(numpy_dtype(spec.dtype).itemsize), *factors])};",
                "}",
                "",
            )
        )

    def _bytes(self, spec: TensorSpec, name: str) -> str:
        element = numpy_dtype(spec.dtype).itemsize
        if self._is_computed(spec):
            return (
                f"/* -1 where the model does not run at these sizes. */\n{self._bytes_head(name)};"
            )
        if not any(spec.dims):
            return f"#define {self.prefix}_{name}_bytes ((size_t){element * prod(spec.bound)})"
        factors = " * ".join(f"(size_t){extent}" for extent in self._extents(spec))
        return (
            f"static inline size_t {self.prefix}_{name}_bytes(const {self.prefix}_dims *dims) {{\n"
            f"  return {element} * {factors};\n}}"
        )


def _field(spec: TensorSpec, name: str, qualifier: str, sizes: Sequence[str] = ()) -> str:
    type = _TYPES.get(spec.dtype) or _BITS[numpy_dtype(spec.dtype).itemsize]
    return f"  {qualifier}{type} *{name}; /* {spec.dtype}[{describe_shape(spec, sizes)}] */"


def _sizes(dim: DimSpec) -> str:
    listed = ", ".join(map(str, dim.sizes)) or "any size"
    return f"{listed}, and from {dim.padded_from} on those between" if dim.padded_from else listed
