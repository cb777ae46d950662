"""`IOBinding`: inputs and outputs that are bound before a run, some to memory of the caller."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from braid.onnxruntime.devices import OrtDevice, device_name
from braid.onnxruntime.errors import WrongTypeError, WrongUseError, WrongValueError
from braid.onnxruntime.node_args import NodeArg
from braid.onnxruntime.value_vectors import OrtValueVector
from braid.onnxruntime.values import OrtValue, value_at
from braid.runtime.device_arrays import DeviceArray


class Session(Protocol):
    """A session that has inputs and outputs to bind."""

    def get_inputs(self) -> list[NodeArg]:
        """Return the bound inputs."""
        ...

    def get_outputs(self) -> list[NodeArg]:
        """Return the bound outputs."""
        ...


class IOBinding:
    """The inputs and outputs that `run_with_iobinding` reads and writes.

    Arrays of numpy and values are read and written where they are; whoever binds an address keeps
    its memory.
    """

    def __init__(self, session: Session) -> None:
        """Begin with nothing bound; `InferenceSession.io_binding` makes one.

        Raises:
            TypeError: the argument is no session.

        """
        if not callable(getattr(session, "get_inputs", None)):
            raise WrongTypeError(
                f"a binding is made of a {type(session).__name__}, expected a session",
                hint="session.io_binding() makes one",
            )
        self.session = session
        self._inputs = {arg.name for arg in session.get_inputs()}
        self._outputs = {arg.name for arg in session.get_outputs()}
        self.bound_inputs: dict[str, OrtValue] = {}
        self.bound_outputs: dict[str, OrtValue | None] = {}
        self._results: list[OrtValue] = []

    def bind_cpu_input(self, name: str, arr_on_cpu: NDArray[Any]) -> None:
        """Let an input be an array of numpy."""
        self.bind_ortvalue_input(name, OrtValue.ortvalue_from_numpy(arr_on_cpu))

    def bind_input(
        self,
        name: str,
        device_type: str,
        device_id: int,
        element_type: object,
        shape: Sequence[int],
        buffer_ptr: int,
    ) -> None:
        """Bind an input to the memory at an address."""
        value = value_at(device_type, device_id, element_type, shape, buffer_ptr)
        self.bind_ortvalue_input(name, value)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Let an input be a value. Raises RuntimeError where the model has no such input."""
        self.bound_inputs[_known(name, self._inputs)] = _value(ortvalue)

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: object = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Ask for an output, which is written to an address if one is given.

        Raises:
            RuntimeError: the model has no such output, or it is to be allocated on a GPU.
            ValueError: there is an address without a type and a shape.

        """
        _known(name, self._outputs)
        if buffer_ptr is None:
            if device_name(device_type) != "cpu":
                raise WrongUseError(
                    f"output '{name}' cannot be allocated on {device_type!r}",
                    hint="bind a value that another package has allocated there: "
                    "bind_ortvalue_output(name, OrtValue.from_dlpack(array))",
                )
            self.bound_outputs[name] = None
            return
        if element_type is None or shape is None:
            raise WrongValueError(
                "`element_type` and `shape` are to be provided if pre-allocated memory is provided"
            )
        value = value_at(device_type, device_id, element_type, shape, buffer_ptr)
        self.bound_outputs[name] = value

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Let an output be written to a value."""
        self.bound_outputs[_known(name, self._outputs)] = _value(ortvalue)

    def synchronize_inputs(self) -> None:
        """Do nothing: a run waits for the GPU's work on its inputs."""

    def synchronize_outputs(self) -> None:
        """Do nothing: when a run returns, its work has ended."""

    def set_results(self, results: Sequence[OrtValue]) -> None:
        """Keep the results of a run, in the order in which outputs were bound."""
        self._results = list(results)

    def get_outputs(self) -> list[OrtValue]:
        """Return the results of the last run, in the order in which outputs were bound."""
        return list(self._results)

    def get_outputs_as_ortvaluevector(self) -> OrtValueVector:
        """Return the same as an `OrtValueVector`."""
        vector = OrtValueVector()
        for value in self._results:
            vector.push_back(value)
        return vector

    def copy_outputs_to_cpu(self) -> list[NDArray[Any]]:
        """Return copies of the results. Raises RuntimeError for one on a GPU."""
        return [np.array(value.numpy()) for value in self._results]

    def clear_binding_inputs(self) -> None:
        """Forget all inputs."""
        self.bound_inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forget all outputs, and results."""
        self.bound_outputs.clear()
        self._results.clear()

    @property
    def is_on_gpu(self) -> bool:
        """True if an output is bound to the memory of a GPU."""
        bound = self.bound_outputs.values()
        return any(value is not None and isinstance(value.buffer, DeviceArray) for value in bound)


class SessionIOBinding(IOBinding):
    """A binding by the signatures of ONNX Runtime's own class, which takes devices."""

    def bind_input(self, name: str, *given: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Bind an input to an array, or to the memory at an address: a device, type, shape,
        address."""
        if len(given) == 1:
            self.bind_cpu_input(name, *given)
            return
        device, element_type, shape, address = _bound_arguments(given)
        super().bind_input(name, device.name, device.device_id(), element_type, shape, address)

    def bind_output(self, name: str, *given: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Ask for an output on a device, or at an address: a device, type, shape, address."""
        if len(given) == 1 and isinstance(given[0], OrtDevice):
            super().bind_output(name, given[0].name, given[0].device_id())
            return
        device, element_type, shape, address = _bound_arguments(given)
        super().bind_output(name, device.name, device.device_id(), element_type, shape, address)

    def get_outputs(self) -> OrtValueVector:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the results of the last run, in the order in which outputs were bound."""
        return self.get_outputs_as_ortvaluevector()


def _bound_arguments(given: tuple[Any, ...]) -> tuple[OrtDevice, object, Sequence[int], int]:
    if len(given) != 4 or not isinstance(given[0], OrtDevice):
        raise WrongTypeError(
            f"memory is bound by {len(given)} arguments, expected an OrtDevice, an element type, "
            "a shape and an address"
        )
    return given


def _known(name: str, names: set[str]) -> str:
    if name not in names:
        raise WrongUseError(
            f"Failed to find NodeArg with name: {name} in the def list",
            hint=f"the model has {', '.join(sorted(names))}",
        )
    return name


def _value(value: object) -> OrtValue:
    if not isinstance(value, OrtValue):
        raise WrongUseError(
            f"a {type(value).__name__} is bound, expected an OrtValue",
            hint="OrtValue.ortvalue_from_numpy and OrtValue.from_dlpack make values of arrays",
        )
    return value
