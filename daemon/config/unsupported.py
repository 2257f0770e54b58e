"""What a checked configuration still lacks to be run: what depends on this machine now, and is told like a wrong setting."""

from importlib.util import find_spec

from daemon.config.keys import key_problem
from daemon.config.model import Config


def unsupported(config: Config) -> list[str]:
    """One sentence for each setting that cannot be followed here: key, value, and what to do instead."""
    problems = []
    if config.openie.backend == "vllm" and find_spec("vllm") is None:
        problems.append(
            'openie.backend = "vllm": vLLM is not installed; install hippod with the extra "vllm" on a machine with a '
            'GPU, or write "llm" and let `vllm serve` run beside hippod'
        )
    if problem := key_problem(config.llm):
        problems.append(problem)
    return [f"{config.file or 'configuration'}: {problem}" for problem in problems]
