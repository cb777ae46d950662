"""The transform of one signal, or of one in each lane: any length, real or complex numbers.

Lengths with a large prime factor are convolutions with a chirp (L. Bluestein, "A linear filtering
approach to the computation of discrete Fourier transform", 1970). A real signal of even length is
a complex one of half the length, whose spectrum is taken apart (J. Cooley, P. Lewis and P. Welch,
"The fast Fourier transform algorithm: programming considerations in the calculation of sine,
cosine and Laplace transforms", 1970).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from braid.analysis.nests.fourier import Signal
from braid.dialects.braid.fourier_tables import chirp, chirp_filter, roots_of_unity
from braid.lowering.cpu.kernels.fourier.complex_numbers import Arithmetic, Complex
from braid.lowering.cpu.kernels.fourier.factors import Factors, Multiplied
from braid.lowering.cpu.kernels.fourier.places import Changed, Places, Plane, Source
from braid.lowering.cpu.kernels.fourier.steps import Step, StepEmitter, other_plane, steps_of
from braid.lowering.cpu.kernels.fourier.tables import Tables
from braid.lowering.emit.emitter import Index


@dataclass(frozen=True)
class SignalTables:
    """The steps of a transform and the factors that it needs, which all iterations share."""

    steps: Sequence[Step]
    chirp: Factors | None
    spectrum: Factors | None
    halves: Factors | None

    @staticmethod
    def added(
        signal: Signal, radices: Sequence[int], tables: Tables, *, is_row: bool
    ) -> "SignalTables":
        """Return the tables that the transform of `signal` in steps of these radices needs."""
        steps = steps_of(radices, tables, is_row=is_row)
        points, core = int(np.prod(radices)), signal.core_length
        factor = spectrum = halves = None
        if points != core:
            factor = Factors.added(tables, chirp(core), is_row=is_row)
            around = chirp_filter(core, points) / points
            spectrum = Factors.added(tables, around, is_row=is_row)
        if signal.is_halved:
            roots = roots_of_unity(np.arange(core), signal.length)
            roots = 1j * np.conj(roots) if signal.is_inverse else -1j * roots
            halves = Factors.added(tables, signal.half_scale * roots, is_row=is_row)
        return SignalTables(steps, factor, spectrum, halves)


@dataclass(frozen=True)
class SignalEmitter:
    """Emits the transform of `signal`, by way of two planes of scratch memory."""

    signal: Signal
    tables: SignalTables
    steps: StepEmitter
    planes: Sequence[Plane]

    @property
    def _ops(self) -> Arithmetic:
        return self.steps.ops

    def emit(self, source: Source, target: Places | None) -> Places:
        """Transform `source`; return where the result is: in `target`, or without one in a plane.

        More places than the result has may follow in a plane.
        """
        signal = self.signal
        if signal.is_halved and not signal.is_inverse:
            whole = self._core(source, None)
            target = target or other_plane(self.planes, whole)
            self._take_apart(whole, target)
            return target
        if signal.kind == "rfft":
            return self._copied(self._core(source, None), target)
        if not signal.is_inverse:
            return self._core(source, target)
        if signal.kind == "irfft":
            plane = other_plane(self.planes, source)
            if signal.is_halved:
                self._put_together(source, self._swapped(plane))
                return self._swapped(self._core(plane, target and self._swapped(target)))
            self._mirror(source, plane)
            source = plane
        scale = 1 / signal.length
        result = self._core(self._swapped(source), target and self._swapped(target, scale))
        return target or self._swapped(result, scale)

    def _swapped(self, places: Source, scale: float = 1.0) -> Changed:
        return Changed(places, self._ops, scale, is_swapped=True)

    def _core(self, source: Source, target: Places | None) -> Places:
        """Emit the complex transform of `signal.core_length` positions."""
        e, tables, table = self.steps.e, self.tables, self.steps.table
        if tables.chirp is None or tables.spectrum is None:
            return self.steps.transform(tables.steps, source, target, self.planes)
        # The signal times the chirp, filled up with zeros.
        plane = other_plane(self.planes, source)
        count, factors = tables.chirp.count, tables.chirp
        turned = Multiplied(source, self._ops, table, factors)
        self.steps.each(count, lambda at: plane.store(e, turned.load(e, at), at))
        nothing = Complex(None, None)
        self.steps.each(
            tables.spectrum.count - count, lambda at: plane.store(e, nothing, e.add(at, count))
        )
        # Its convolution with the conjugate chirp: the inverse transform of a product of spectra.
        found = self.steps.transform(tables.steps, plane, None, self.planes)
        product = self._swapped(Multiplied(found, self._ops, table, tables.spectrum))
        back = self._swapped(self.steps.transform(tables.steps, product, None, self.planes))
        # The first positions are multiplied by the chirp again.
        result = Multiplied(back, self._ops, table, factors)
        written = target or other_plane(self.planes, back)
        self.steps.each(count, lambda at: written.store(e, result.load(e, at), at))
        return written

    def _copied(self, source: Places, target: Places | None) -> Places:
        """Copy the first half of a spectrum, where there is a target."""
        if target is None:
            return source
        e = self.steps.e
        self.steps.each(
            self.signal.length // 2 + 1, lambda at: target.store(e, source.load(e, at), at)
        )
        return target

    def _take_apart(self, whole: Places, target: Places) -> None:
        """Compute the spectrum of a real signal from that of the complex signal with half the
        length."""
        e, half, factors = self.steps.e, self.signal.core_length, self.tables.halves
        assert factors is not None
        is_whole = self.signal.kind != "rfft"
        whole.store(e, whole.load(e, 0), half)

        def parts(at: Index) -> tuple[Complex, Complex]:
            """Return the spectra of even and of odd places, the latter turned."""
            ops, found = self._ops, whole.load(e, at)
            other = ops.conjugate(whole.mirrored(e, e.sub(half, at)))
            even = ops.scaled(ops.add(found, other), self.signal.half_scale)
            factor = factors.load(e, self.steps.table, at)
            return even, ops.multiply(ops.subtract(found, other), factor)

        def body(at: Index) -> None:
            even, odd = parts(at)
            target.store(e, self._ops.add(even, odd), at)
            if is_whole:
                target.store(e, self._ops.subtract(even, odd), e.add(at, half))

        self.steps.each(half, body)
        if not is_whole:
            target.first(1).store(e, self._ops.subtract(*parts(0)), half)

    def _put_together(self, source: Source, target: Places) -> None:
        """Compute the spectrum of the complex signal with half the length from that of a real
        signal.

        The imaginary parts of the first and last place count as zero.
        """
        e, half, factors = self.steps.e, self.signal.core_length, self.tables.halves
        assert factors is not None
        ops, scale = self._ops, self.signal.half_scale

        def body(at: Index) -> None:
            found = source.load(e, at)
            other = ops.conjugate(source.mirrored(e, e.sub(half, at)))
            even = ops.scaled(ops.add(found, other), scale)
            factor = factors.load(e, self.steps.table, at)
            odd = ops.multiply(ops.subtract(found, other), factor)
            target.store(e, ops.add(even, odd), at)

        self.steps.each(half, body)
        first, last = (Complex(source.first(1).load(e, place).real, None) for place in (0, half))
        both = Complex(ops.add(first, last).real, ops.subtract(first, last).real)
        target.first(1).store(e, ops.scaled(both, scale), 0)

    def _mirror(self, source: Source, target: Plane) -> None:
        """Write the whole spectrum of a real signal of odd length; `source` is its half."""
        e, length = self.steps.e, self.signal.length
        half = length // 2 + 1
        self.steps.each(half, lambda at: target.store(e, source.load(e, at), at))

        def body(at: Index) -> None:
            found = source.mirrored(e, e.sub(length - half, at))
            target.store(e, self._ops.conjugate(found), e.add(at, half))

        self.steps.each(length - half, body)
