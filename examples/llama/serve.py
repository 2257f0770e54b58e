"""Serves a GGUF file with llama.cpp's server, which the package xllamacpp contains: `serve.py --model FILE`."""

import argparse
import signal

import xllamacpp


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--context", type=int, default=8192, help="tokens of a prompt and its answer")
    parser.add_argument("--threads", type=int, help="by default, llama.cpp chooses")
    arguments = parser.parse_args()
    params = xllamacpp.CommonParams()
    params.model.path = arguments.model
    params.n_ctx = arguments.context
    # One call after the other, so that each has the whole context.
    params.n_parallel = 1
    if arguments.threads is not None:
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = arguments.threads
    params.hostnames = ["127.0.0.1"]
    params.port = arguments.port
    server = xllamacpp.Server(params)
    print(f"serving {arguments.model} at {server.listening_address}/v1", flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
