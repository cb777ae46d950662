"""Find where inputs and outputs of a model may be: which of them only a GPU uses."""

from dataclasses import dataclass

from braid.runtime.device_arrays import DeviceArray
from braid.runtime.manifest import TensorSpec
from braid.runtime.native_abi import CModel
from braid.support.errors import BraidError
from braid.support.option_names import option_text

PLUGIN = "cuda"
HOST = "the host"

Users = frozenset[str]
"""The users of an input or the makers of an output: `GPU 0`, names of other devices, or `HOST`."""


@dataclass(frozen=True)
class Ports:
    """The users of each input and the makers of each output."""

    inputs: tuple[Users, ...]
    outputs: tuple[Users, ...]


def gpu_name(number: int) -> str:
    """Return the name of a GPU in messages, by CUDA's number."""
    return f"GPU {number}"


def ports_of(model: CModel) -> Ports:
    """Return the user of each input: the launches of a model that is nothing else, or the host."""
    count, total = model.input_count, model.input_count + model.output_count
    users: list[set[str]] = [set() for _ in range(total)]
    for i in range(model.stage_count):
        stage = model.stages[i]
        for number in (stage.function, *(stage.replicas[k] for k in range(stage.replica_count))):
            function = model.functions[number]
            buffers = (
                *(stage.inputs[k] for k in range(function.input_count)),
                *(stage.outputs[k] for k in range(function.output_count)),
            )
            for buffer in buffers:
                if buffer < total:  # others are channels
                    users[buffer].add(_user(model, number))
    if model.stage_count == 0:
        users = [{HOST} for _ in range(total)]
    return Ports(tuple(map(frozenset, users[:count])), tuple(map(frozenset, users[count:])))


def _user(model: CModel, number: int) -> str:
    function = model.functions[number]
    if function.on_caller:
        return HOST
    device = model.devices[function.device]
    name = device.name.decode()
    if device.plugin.decode() != PLUGIN:
        return f"device '{name}'"
    ordinal = name.rpartition(":")[2]
    return gpu_name(int(ordinal) if ordinal.isdecimal() else 0)


def check_place(what: str, spec: TensorSpec, users: Users, array: DeviceArray) -> None:
    """Check that the GPU whose memory an input or output is in is the only one to use it.

    Raises:
        BraidError: it is not, or the tensor has open dims, which the host sees to.

    """
    own = gpu_name(array.device)
    if -1 in spec.shape:
        raise BraidError(
            f"{what} '{spec.name}' is in the memory of {own}, and has open dims: the host chooses "
            "the code for them, and pads",
            hint="give an array in this computer's memory, as x.cpu() is, or compile for one size "
            f"({option_text('shapes')})",
        )
    if users <= {own}:
        return
    others = ", ".join(sorted(users - {own}))
    wanted = next(iter(users)) if len(users) == 1 else HOST
    place = "this computer's memory" if not wanted.startswith("GPU") else f"the memory of {wanted}"
    raise BraidError(
        f"{what} '{spec.name}' is in the memory of {own}, and {others} "
        f"{'uses' if what == 'input' else 'makes'} it",
        hint=f"give an array in {place}"
        + (", as x.cpu() is, or compile for a GPU" if place.startswith("this") else ""),
    )
