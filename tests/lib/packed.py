"""The packages of the clients, packed with the program and installed as a new user would:
without a network, as an ordinary user, on a read-only root, with a /tmp that is mounted
noexec. During the work only /var/lib/app can be written."""

import os
import sys

from tap import PROGRAM, TOP, run, skip

# $1 is the folder of the packages and pages, $2 the folder of Python, $3 the line that
# installs, and $4 the line that runs twice.
INTO = """
set -e
mount --make-rprivate /
mount --bind "$2" /mnt
mount -t tmpfs -o mode=755 tmpfs /var/lib
mkdir /var/lib/app /var/lib/home /var/lib/installed
cp -R "$1"/. /var/lib/installed
chown -R nobody /var/lib/app /var/lib/home /var/lib/installed
mount -t tmpfs -o noexec,mode=1777 tmpfs /tmp
mount -o remount,bind,ro /
user="setpriv --reuid=nobody --clear-groups --no-new-privs env -i PATH=/usr/bin:/bin"
cd /var/lib/installed
$user HOME=/var/lib/home sh -ec "$3" >&2
mount --bind /var/lib/app /var/lib/app
mount -o remount,bind,ro /var/lib
for n in 1 2; do
    $user HOME=/nonexistent sh -ec "$4"
done
"""


def pack(folder):
    """Pack both clients into @folder, with the program that is tested."""
    inside = os.path.join(folder, "inside")
    os.makedirs(os.path.join(inside, "licenses"))
    os.symlink(PROGRAM, os.path.join(inside, "idem"))
    done = run([os.path.join(TOP, "tools", "clients"), folder, f"x86_64={inside}"])
    assert done.status == 0, done


def try_out(folder, install, work):
    """Run the lines of shell @install, and then @work twice; return what these print."""
    new = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child"]
    if os.getuid() != 0 or run([*new, "true"]).status != 0:
        skip("a root that cannot be written is made by root, where namespaces can be made")
    done = run([*new, "sh", "-c", INTO, "sh", folder, sys.base_prefix, install, work])
    assert done.status == 0, done
    return done.stdout.decode().splitlines()
