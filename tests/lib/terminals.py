"""Programs at a terminal."""

import contextlib
import fcntl
import os
import pty
import struct
import termios

from patience import PATIENCE
from tap import kill_session, start


def at_terminal(command, env=None, columns=80, own=("stdout", "stderr"), **popen):
    """Run @command, whose @own streams are a terminal of so many columns. Return its status,
    and what it printed there."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = start(command, env, **dict.fromkeys(own, theirs), **popen)
    os.close(theirs)
    text = b""
    try:
        with contextlib.suppress(OSError):  # EIO: nobody has it open any more.
            while part := os.read(ours, 65536):
                text += part
        return process.wait(PATIENCE), text.decode()
    finally:
        kill_session(process)
        os.close(ours)
