"""Write the bytes of a file as an array in C: embed.py FILE NAME >OUT.c"""

import sys

with open(sys.argv[1], "rb") as f:
    DATA = f.read()
print("/* Made from aws/lambda/bootstrap.c. */")
print('#include "lambda/package.h"\n')
print(f"const unsigned char {sys.argv[2]}[] = {{")
for at in range(0, len(DATA), 16):
    print("   ", " ".join(f"{byte}," for byte in DATA[at : at + 16]))
print(f"}};\nconst size_t {sys.argv[2]}_len = sizeof({sys.argv[2]});")
