"""The facts that a session gives: its model, its devices, and options without effect."""

from collections.abc import Mapping, Sequence
from typing import NoReturn, cast

from braid.onnxruntime.devices import CPU_MEMORY, OrtEpDevice, OrtMemoryInfo, get_ep_devices
from braid.onnxruntime.errors import NotImplementedStatus, WrongTypeError, WrongUseError
from braid.onnxruntime.loading import Opened
from braid.onnxruntime.node_args import ModelMetadata, NodeArg
from braid.onnxruntime.providers import CPU, CUDA
from braid.onnxruntime.session_options import SessionOptions
from braid.onnxruntime.values import OrtValue
from braid.runtime.model import Model
from braid.support import logs


class Session:
    """A session as it is described; `InferenceSession` opens one, and runs it."""

    _options: SessionOptions
    _opened: Opened
    _model: Model
    _profile_start: int

    @property
    def model(self) -> Model:
        """Return the compiled model, which can be saved."""
        return self._model

    def get_inputs(self) -> list[NodeArg]:
        """Return the descriptions of the model's inputs."""
        return list(self._opened.inputs)

    def get_outputs(self) -> list[NodeArg]:
        """Return the descriptions of the model's outputs."""
        return list(self._opened.outputs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Return the inputs that have a weight as their value; runs do not take another."""
        return list(self._opened.overridable)

    def get_modelmeta(self) -> ModelMetadata:
        """Return the author's metadata of the model; empty for a `.braid` file."""
        return self._opened.metadata

    def get_session_options(self) -> SessionOptions:
        """Return the options that the session was made with."""
        return self._options

    def get_providers(self) -> list[str]:
        """Return the runtime of the model, by the names of ONNX Runtime's providers."""
        return [CUDA, CPU] if "cuda" in self._model.devices.values() else [CPU]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Return the options of each provider, which are empty."""
        return {name: {} for name in self.get_providers()}

    def get_input_memory_infos(self) -> list[OrtMemoryInfo]:
        """Return where the inputs are taken from: this computer's memory."""
        return [CPU_MEMORY for _ in self._opened.inputs]

    def get_output_memory_infos(self) -> list[OrtMemoryInfo]:
        """Return where the outputs are given: this computer's memory."""
        return [CPU_MEMORY for _ in self._opened.outputs]

    def get_input_epdevices(self) -> list[OrtEpDevice]:
        """Return the provider that takes each input."""
        return get_ep_devices() * len(self._opened.inputs)

    def get_provider_graph_assignment_info(self) -> NoReturn:
        """Raise NotImplemented: the whole model is compiled."""
        raise NotImplementedStatus(
            "get_provider_graph_assignment_info: no part of the model is assigned to a provider",
            hint="session.model.devices has the devices of a compiled model",
        )

    def get_profiling_start_time_ns(self) -> int:
        """Return when the session began to profile, as `time.time_ns()`; 0 where it does not."""
        return self._profile_start

    def get_tuning_results(self) -> list[dict[str, object]]:
        """Return an empty list: kernels are chosen when a model is compiled."""
        return []

    def set_tuning_results(
        self, results: Sequence[Mapping[str, object]], *, error_on_invalid: bool = False
    ) -> None:
        """Ignore the kernels that another runtime chose.

        Raises:
            RuntimeError: there are results, and those that do not fit are to be errors.

        """
        for result in results:
            provider = result.get("ep")
            if error_on_invalid:
                raise WrongUseError(
                    f"Error in execution: Cannot find execution provider {provider}",
                    hint="braid tune keeps the kernels that it measured",
                )
            logs.log(logs.DEBUG, "tuning results of provider '%s' have no effect", provider)

    def set_ep_dynamic_options(self, options: dict[str, str]) -> None:
        """Ignore options of execution providers. Raises RuntimeError if there are none."""
        if not isinstance(cast(object, options), dict):
            raise WrongTypeError(f"options is {options!r:.200}, expected a dict of texts")
        if not options:
            raise WrongUseError("No options were provided")
        for name in options:
            logs.log(logs.DEBUG, "option '%s' of execution providers has no effect", name)

    def release_captured_graph(self, graph_annotation_id: int = 0) -> None:
        """Do nothing: sessions capture no graphs of a GPU."""

    def create_ortvalue_from_shape_and_type(
        self,
        shape: Sequence[int],
        element_type: object,
        device_type: str,
        device_id: int = 0,
        vendor_id: int = -1,
    ) -> OrtValue:
        """Return a value whose elements are any numbers.

        Raises:
            RuntimeError: it is to be on a GPU, of which braid allocates no memory.

        """
        return OrtValue.ortvalue_from_shape_and_type(
            shape, element_type, device_type, device_id, vendor_id
        )

    @property
    def _sess(self) -> "Session":
        return self  # programs hand it on to classes of the module `capi`
