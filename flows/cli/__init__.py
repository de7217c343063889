"""agent-bench: the command line. Thin: options in, exit code out; nothing heavy is imported before it is needed."""

from __future__ import annotations

import argparse
import errno
import io
import os
import sys
from collections.abc import Callable, Sequence

from flows.cli.commands import replay, verify
from flows.cli.parser import build_parser
from flows.errors import StudyError

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns its exit code.

    0 done, 1 failed, 2 refused before any work, 3 halted, 130 interrupted; argparse itself exits with 0 or 2.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a locale without … or ✓ must not end a study
    # All matrices here are small: threads of the matrix library wait for each other, and take half the analysis's time.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    arguments = build_parser().parse_args(argv)
    command: Callable[[argparse.Namespace], int] = arguments.command
    try:
        code = command(arguments)
        sys.stdout.flush()
        return code
    except StudyError as error:
        print(f"agent-bench: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        on = "finished work is kept, the same command goes on from there"
        over = "the same command starts over"
        print(f"agent-bench: interrupted; {over if command in (verify, replay) else on}", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        if error.filename is not None or error.errno not in (errno.ENOSPC, errno.EIO):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"agent-bench: the output cannot be written: {error.strerror}", file=sys.stderr)
        return 1
