"""The server process: `python -m flows.local_model.server`. Serves until SIGTERM or SIGINT.

Prints `READY <address>` once the model is loaded. Answers OpenAI chat completions at `/v1/chat/completions` and
Anthropic messages at `/v1/messages`. Repeatable at temperature 0 by default: one slot and no prompt cache, so that
an answer depends on no other request. A key, if one is wanted, comes through the environment, not the command
line, which every user of the machine can read.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from flows.errors import ConfigurationError
from flows.local_model.weights import MODEL_NAME, SERVER_PACKAGE, require_extra, verified_weights

READY = "READY"
KEY_VARIABLE = "AGENT_BENCH_LOCAL_SERVER_KEY"
TEMPLATE = Path(__file__).with_name("chatml-json-tools.jinja")


def main(arguments: Sequence[str] | None = None) -> int:
    """Load the model, serve it, and return an exit code once told to stop."""
    options = _parser().parse_args(arguments)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        weights = options.weights or verified_weights(require_extra())
        library = importlib.import_module(SERVER_PACKAGE)
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    params = library.CommonParams()
    params.model.path = str(weights)
    params.model_alias = {MODEL_NAME if options.weights is None else options.weights.stem}
    params.chat_template = TEMPLATE.read_text(encoding="utf-8")
    params.use_jinja = True
    params.hostnames = ["127.0.0.1"]
    params.port = options.port
    params.n_ctx = options.context_tokens * options.slots
    params.n_parallel = options.slots
    params.cpuparams.n_threads = options.threads
    params.cpuparams_batch.n_threads = options.threads
    params.n_gpu_layers = 0
    params.fit_params = False
    params.cache_prompt = options.prompt_cache
    params.cache_ram_mib = 0
    params.offline = True
    params.ui = False
    params.verbosity = 2
    if key := os.environ.get(KEY_VARIABLE):
        params.api_keys = [key]
    if options.with_parent:
        threading.Thread(target=_wait_for_end_of_input, args=(stop,), daemon=True).start()
    server = library.Server(params)
    print(READY, server.listening_address, flush=True)
    stop.wait()
    sys.stdout.flush()
    # The library's own shutdown can wait for requests in flight.
    os._exit(0)


def _wait_for_end_of_input(stop: threading.Event) -> None:
    while sys.stdin.buffer.read(4096):
        continue
    stop.set()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m flows.local_model.server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 (default): any free port")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--slots", type=int, default=1, help="requests answered at a time")
    parser.add_argument("--context-tokens", type=int, default=8192, help="per slot")
    parser.add_argument(
        "--prompt-cache", action="store_true", help="read only what is new in a prompt: faster, not repeatable"
    )
    parser.add_argument("--with-parent", action="store_true", help="end when standard input does")
    parser.add_argument("--weights", type=Path, help="another GGUF file, unverified")
    return parser


if __name__ == "__main__":
    sys.exit(main())
