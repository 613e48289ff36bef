"""Runs a peer in the Python that has it, which need not have ours: PROGRAM WEIGHTS THREADS CONTEXT.

The program's ``Runtime`` is opened; then every line on standard input is an object whose ``what``
names one of its methods, the rest being its arguments. The answer, a line as well, is what the
method returns, or an object with ``error``, which ends the process.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from typing import Any


def main() -> None:
    # Whatever the library prints goes nowhere: the answers have a file of their own.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(answer: dict[str, Any]) -> None:
        print(json.dumps(answer), file=answers, flush=True)

    program, weights, threads, context_length = sys.argv[1:]
    try:
        spec = importlib.util.spec_from_file_location("program", program)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        runtime = module.Runtime(weights, int(threads), int(context_length))
        say({"version": runtime.version})
        for line in sys.stdin:
            about = json.loads(line)
            say(getattr(runtime, about.pop("what"))(**about))
    except Exception as problem:
        say({"error": f"{type(problem).__name__}: {problem}"})
        sys.exit(1)


if __name__ == "__main__":
    main()
