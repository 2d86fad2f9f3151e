"""Run a command again and again, killed before each of its acts on files in turn.

``python killed.py FOLDER COMMAND...`` forks a child for each act (an open, a write, a
close, a rename or a removal in FOLDER), kills it with SIGKILL just before the act, and
prints a line of JSON: the file of the act and the digests of all files left behind. The
last line is of the run that nothing killed.
"""

import contextlib
import hashlib
import io
import json
import os
import signal
import sys
from pathlib import Path

# Without a folder nothing is run: tests are looked for in this file too.
FOLDER = Path(sys.argv[1] if __name__ == "__main__" else ".").resolve()
ACTS = {"write", "writelines", "close", "flush", "truncate"}
EVENTS = {"open", "os.rename", "os.remove", "os.truncate"}


def digests():
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(FOLDER.iterdir())
    }


class Killer:
    """Counts acts on files in the folder, and ends the process before a given one."""

    def __init__(self, last, report):
        self.left, self.report, self.armed = last, report, False

    def act(self, path):
        if not self.armed or not isinstance(path, str | bytes | os.PathLike):
            return
        if Path(os.fsdecode(path)).parent != FOLDER:
            return
        self.left -= 1
        if not self.left:
            self.armed = False
            os.write(self.report, os.fsencode(path))
            os.kill(os.getpid(), signal.SIGKILL)

    def audit(self, event, arguments):
        if event == "open" and isinstance(arguments[2], int):
            if arguments[2] & (os.O_WRONLY | os.O_RDWR):
                self.act(arguments[0])
        elif event in EVENTS:
            self.act(arguments[0])

    def profile(self, _frame, event, function):
        if event == "c_call" and function.__name__ in ACTS:
            stream = getattr(function, "__self__", None)
            if isinstance(stream, io.IOBase) and not stream.closed:
                self.act(getattr(stream, "name", None))


def child(last, arguments, report):
    from prudent.cli.app import _run

    killer = Killer(last, report)
    sys.addaudithook(killer.audit)
    sys.setprofile(killer.profile)
    killer.armed = True
    with contextlib.redirect_stdout(io.StringIO()):
        code = _run(arguments, debug=False)
    killer.armed = False
    os._exit(code)


def main():
    import sklearn.linear_model  # noqa: F401

    import prudent.certification
    import prudent.persistence  # noqa: F401

    before = {path: path.read_bytes() for path in FOLDER.iterdir()}
    for last in range(1, 500):
        for path in FOLDER.iterdir():
            if path not in before:
                path.unlink()
        for path, content in before.items():
            path.write_bytes(content)
        reading, writing = os.pipe()
        pid = os.fork()
        if not pid:
            child(last, sys.argv[2:], writing)
        os.close(writing)
        with os.fdopen(reading, "rb") as stream:
            act = os.fsdecode(stream.read())
        _, status = os.waitpid(pid, 0)
        ended = os.waitstatus_to_exitcode(status)
        print(json.dumps({"act": act, "code": ended, "files": digests()}), flush=True)
        if not act:
            return


if __name__ == "__main__":
    main()
