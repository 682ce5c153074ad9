"""Serve a GGUF model on loopback while a command runs: `serve.py --model M.gguf -- COMMAND`."""

import argparse
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path


def main() -> int:
    """Start the server, wait until it answers, run the command, stop the server."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="GGUF file to serve")
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument("--context", type=int, default=4096, help="context window in tokens")
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()
    options = {
        "model": args.model,
        "port": args.port,
        "n_ctx": args.context,
        "n_threads": os.cpu_count() or 1,
        "logits_all": "true",  # without it the server gives no log-probabilities
        "verbose": "false",
    }
    flags = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    program = Path(__file__).with_name("llama_server.py")
    server = subprocess.Popen([sys.executable, program, *flags], stdout=subprocess.DEVNULL)
    try:
        wait_until_ready(server, f"http://127.0.0.1:{args.port}/v1/models")
        return subprocess.run(args.command, check=False).returncode
    finally:
        server.terminate()
        server.wait()


def wait_until_ready(server: subprocess.Popen[bytes], url: str, *, seconds: float = 120) -> None:
    """Return once the server answers; leave if it ends or takes too long."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if server.poll() is not None:
            sys.exit(f"the model server ended with code {server.returncode}")
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310  (loopback)
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.5)
    sys.exit(f"the model server did not answer within {seconds:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
