"""The examples for Lambda, run as they stand."""

import os
import shutil

from files import read, write
from lambda_api import Sandbox
from tap import PROGRAM, TOP, equal, main, test


@test
def a_package_is_a_bootstrap_and_an_idem():
    """The two lines of the bootstrap start the idem beside them as the runtime, and the
    handler beside them finds that idem by its name."""
    os.mkdir("task")
    shutil.copy(os.path.join(TOP, "examples", "lambda", "bootstrap"), "task")
    os.symlink(PROGRAM, "task/idem")
    write("task/charge", "#!/bin/sh\necho charged >>ledger\necho '\"'$(command -v idem)'\"'\n", 0o755)
    task = os.path.abspath("task")
    with Sandbox("charge", {"LAMBDA_TASK_ROOT": task}, program=[f"{task}/bootstrap"]) as box:
        for _ in range(2):
            equal(box.invoke({"idempotencyKey": "order"}).json(), f"{task}/idem")
    equal(read("ledger"), "charged\n")


if __name__ == "__main__":
    main()
