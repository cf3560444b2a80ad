# Exchanges two names repeatedly, each time atomically, for a minute. Prints a line after the first exchange.
import ctypes
import os
import random
import sys
import time

library = ctypes.CDLL(None, use_errno=True)
first, second = sys.argv[1].encode(), sys.argv[2].encode()
deadline = time.time() + 60
has_printed = False
while time.time() < deadline:
    if library.renameat2(-100, first, -100, second, 2) != 0 and not has_printed:
        print(os.strerror(ctypes.get_errno()), flush=True)
    time.sleep(random.random() * 0.001)
    if not has_printed:
        print("begun", flush=True)
        has_printed = True
