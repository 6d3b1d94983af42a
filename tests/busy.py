# SPDX-License-Identifier: Apache-2.0
"""How busy a machine is, for tests with a limit on time."""
import time


def slowness():
    """How much longer work takes here than the processor time it needs: others want the processor too. 1 on an idle machine."""
    wall, used = time.monotonic(), time.thread_time()
    while time.thread_time() - used < 0.02:
        pass
    return max(1.0, (time.monotonic() - wall) / (time.thread_time() - used))
