"""Classes and functions of ONNX Runtime that have no meaning here.

Programs may import them and use them in isinstance; creating or calling one is refused.
"""

from typing import NoReturn

from braid.onnxruntime.errors import Fail, NotImplementedStatus


class _Absent:
    """A class without instances, which resembles ONNX Runtime's class only in its name."""

    instead = "braid has none"

    def __init__(self, *arguments: object, **keywords: object) -> None:
        """Raise NotImplemented."""
        raise NotImplementedStatus(f"{type(self).__name__}: {self.instead}")


class SparseTensor(_Absent):
    """A sparse tensor."""

    instead = "braid has no sparse tensors; give a dense array"

    @classmethod
    def sparse_coo_from_numpy(cls, *arguments: object) -> NoReturn:
        """Raise NotImplemented."""
        raise NotImplementedStatus(f"SparseTensor: {cls.instead}")

    sparse_csr_from_numpy = sparse_coo_from_numpy


class LoraAdapter(_Absent):
    """Weights that are added to those of a model."""

    instead = "weights are compiled with the model; merge the adapter into it"

    @staticmethod
    def Load(*arguments: object) -> NoReturn:
        """Raise NotImplemented."""
        raise NotImplementedStatus(f"LoraAdapter: {LoraAdapter.instead}")


class AdapterFormat(_Absent):
    """A file of a `LoraAdapter`."""

    instead = LoraAdapter.instead

    @staticmethod
    def read_adapter(file_path: object) -> NoReturn:
        """Raise NotImplemented."""
        raise NotImplementedStatus(f"AdapterFormat: {LoraAdapter.instead}")


class ModelCompiler(_Absent):
    """The class of ONNX Runtime that writes models of one execution provider."""

    instead = "session.model.save(path) writes a .braid file, which a session opens"


class ModelPackage(_Absent):
    """A folder of models."""

    instead = "give a session the path of one model"


class ModelPackageContext(ModelPackage):
    """A folder of models that is open."""


class ModelPackageComponentContext(ModelPackage):
    """A model of a folder."""


class ModelPackageOptions(ModelPackage):
    """The options by which a folder of models is opened."""


class ModelPackageWriteMode(ModelPackage):
    """The mode in which a folder of models is written."""


class OrtSyncStream(_Absent):
    """A stream of a device."""

    instead = "runs wait for the work of a GPU on their inputs, and end with their own"


class OrtEpAssignedNode(_Absent):
    """A node of the part of a model that one provider runs."""

    instead = "a session's whole model is compiled"


class OrtEpAssignedSubgraph(OrtEpAssignedNode):
    """The part of a model that one provider runs."""


class OrtEpContextData(_Absent):
    """The class of ONNX Runtime for a provider's data about a model that it compiled."""

    instead = ModelCompiler.instead


class OrtEpContextDataBuffer(OrtEpContextData):
    """Memory of `OrtEpContextData`."""


class OrtExternalInitializerInfo(_Absent):
    """The class of ONNX Runtime for the place of a weight in a file."""

    instead = "give the path of the model, and keep its files beside it"


def register_execution_provider_library(registration_name: str, library_path: str) -> NoReturn:
    """Raise NotImplemented: there are no providers but braid."""
    raise NotImplementedStatus(
        f"library '{registration_name}' of an execution provider: models are compiled, not run "
        "by providers",
        hint="the entry braid.target says which device a model is compiled for",
    )


def unregister_execution_provider_library(registration_name: str) -> NoReturn:
    """Raise Fail: none can be registered."""
    raise Fail(f"Execution provider library: {registration_name} was not registered.")
