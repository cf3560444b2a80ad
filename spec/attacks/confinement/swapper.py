# Exchanges two names again and again, each time at once. Tells after the first time that it has begun.
import ctypes
import os
import random
import sys
import time

library = ctypes.CDLL(None, use_errno=True)
one, other = sys.argv[1].encode(), sys.argv[2].encode()
ends = time.time() + 60
told = False
while time.time() < ends:
    if library.renameat2(-100, one, -100, other, 2) != 0 and not told:
        print(os.strerror(ctypes.get_errno()), flush=True)
    time.sleep(random.random() * 0.001)
    if not told:
        print("begun", flush=True)
        told = True
