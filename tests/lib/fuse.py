#!/usr/bin/env python3
"""A file system in memory, spoken to the kernel by hand: fuse.py DIR TYPE SOURCE LOCKS

TYPE is the type in /proc/self/mountinfo, such as "fuse.sshfs". LOCKS are "kernel" (the
kernel does the locks itself), "lying" (every lock is granted to everybody) or "none"
(there are no locks). It prints "ready" once it is mounted, and serves until it is killed.
It has one directory and no links, which is enough for a SQLite store. See fuse(4) and
linux/fuse.h for the numbers.
"""

import ctypes
import errno
import os
import stat
import struct
import sys

ROOT = 1
POSIX_LOCKS = 1 << 1
HEADER = struct.Struct("<IIQQIIIHH")
ATTR = struct.Struct("<6Q10I")


class File:
    def __init__(self, number, mode):
        self.number, self.mode, self.data = number, mode, bytearray()

    def attr(self):
        size = len(self.data)
        times = (0,) * 6
        return ATTR.pack(
            self.number, size, (size + 511) // 512, *times[:3], *times[3:],
            self.mode, 1, os.getuid(), os.getgid(), 0, 4096, 0,
        )  # fmt: skip


class Server:
    def __init__(self, locks):
        self.locks = locks
        self.files = {ROOT: File(ROOT, stat.S_IFDIR | 0o755)}
        self.names = {}
        self.calls = {
            1: self.lookup,
            3: self.getattr,
            4: self.setattr,
            10: self.unlink,
            14: self.open,
            15: self.read,
            16: self.write,
            17: self.statfs,
            18: self.nothing,  # release
            20: self.nothing,  # fsync
            25: self.nothing,  # flush
            26: self.init,
            27: self.open,  # opendir
            28: self.nothing,  # readdir
            29: self.nothing,  # releasedir
            31: self.getlk,
            32: self.setlk,
            33: self.setlk,
            35: self.create,
        }

    def answer(self, opcode, node, body):
        """Return the bytes of an answer, or raise OSError with an errno for it."""
        call = self.calls.get(opcode)
        if call is None:
            raise OSError(errno.ENOSYS, "")
        return call(node, body)

    def init(self, _, body):
        major, _, ahead, flags = struct.unpack_from("<IIII", body)
        flags &= 0 if self.locks == "kernel" else POSIX_LOCKS
        return struct.pack("<IIIIHHII", major, 31, ahead, flags, 8, 8, 65536, 1) + bytes(32)

    def entry(self, number):
        return struct.pack("<QQQQII", number, 0, 0, 0, 0, 0) + self.files[number].attr()

    def lookup(self, _, body):
        name = body.split(b"\0")[0]
        if name not in self.names:
            raise OSError(errno.ENOENT, "")
        return self.entry(self.names[name])

    def getattr(self, node, _):
        return struct.pack("<QII", 0, 0, 0) + self.files[node].attr()

    def setattr(self, node, body):
        valid, _, _, size = struct.unpack_from("<IIQQ", body)
        mode = struct.unpack_from("<I", body, 8 * 7 + 3 * 4)[0]
        file = self.files[node]
        if valid & 1:
            file.mode = stat.S_IFREG | mode & 0o7777
        if valid & 8:
            del file.data[size:]
            file.data.extend(bytes(size - len(file.data)))
        return self.getattr(node, body)

    def create(self, _, body):
        mode = struct.unpack_from("<II", body)[1]
        name = body[16:].split(b"\0")[0]
        number = len(self.files) + 1
        self.files[number] = File(number, mode)
        self.names[name] = number
        return self.entry(number) + self.open(number, body)

    def unlink(self, _, body):
        del self.names[body.split(b"\0")[0]]
        return b""

    def open(self, node, _):
        return struct.pack("<QIi", node, 0, 0)

    def read(self, node, body):
        _, at, size = struct.unpack_from("<QQI", body)
        return bytes(self.files[node].data[at : at + size])

    def write(self, node, body):
        _, at, size = struct.unpack_from("<QQI", body)
        data = self.files[node].data
        data.extend(bytes(max(0, at + size - len(data))))
        data[at : at + size] = body[40 : 40 + size]
        return struct.pack("<II", size, 0)

    def statfs(self, *_):
        return struct.pack("<5Q10I", 1 << 20, 1 << 20, 1 << 20, 100, 100, 4096, 255, 4096, *[0] * 7)

    def getlk(self, _, body):
        self.setlk(_, body)
        start, end = struct.unpack_from("<QQ", body, 16)
        return struct.pack("<QQII", start, end, 2, 0)  # F_UNLCK

    def setlk(self, *_):
        if self.locks == "none":
            raise OSError(errno.ENOLCK, "")
        return b""

    def nothing(self, *_):
        return b""


def mount(fd, directory, kind, source):
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={fd},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
    args = (source, directory, kind)
    if libc.mount(*map(str.encode, args), 0, options.encode()) != 0:
        raise OSError(ctypes.get_errno(), "mount")


def unmount(directory):
    """Detach the file system at @directory."""
    ctypes.CDLL(None).umount2(directory.encode(), 2)  # MNT_DETACH


def serve(fd, server):
    silent = (2, 36, 38, 42)  # forget, interrupt, destroy, batch_forget
    while True:
        try:
            request = os.read(fd, 1 << 18)
        except OSError as gone:
            if gone.errno in (errno.EINTR, errno.EAGAIN, errno.ENOENT):
                continue
            return
        _, opcode, unique, node, *_ = HEADER.unpack_from(request)
        if opcode in silent:
            continue
        try:
            body, code = server.answer(opcode, node, request[HEADER.size :]), 0
        except OSError as error:
            body, code = b"", -error.errno
        os.write(fd, struct.pack("<IiQ", 16 + len(body), code, unique) + body)


def main():
    directory, kind, source, locks = sys.argv[1:]
    fd = os.open("/dev/fuse", os.O_RDWR)
    mount(fd, directory, kind, source)
    print("ready", flush=True)
    serve(fd, Server(locks))


if __name__ == "__main__":
    main()
