"""The memory of a worker process: threads reuse the memory that other threads freed."""

import platform
import subprocess
import sys

import pytest

# Arrays of pictures, allocated and freed by threads; the first argument decides whether glibc is told to keep freed
# memory.
PICTURES = """
import resource, sys, threading
import numpy as np
from hybrid.serving.threads import keep_freed_memory
if sys.argv[1] == "kept":
    keep_freed_memory()
def work():
    for _ in range(60):
        kept = [np.ones((480, 640, width), np.float32) for width in (1, 3, 5)]
for _ in range(2):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    # One after the other: of threads side by side, chance decides how much is held at once.
    for _ in range(3):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.system
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
def test_memory_that_threads_freed_is_used_again() -> None:
    def faults(word: str) -> int:
        command = [sys.executable, "-c", PICTURES, word]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    assert faults("kept") < faults("returned") / 4
