// SPDX-License-Identifier: MIT
//
// The headers as they are against every released snapshot of this major: compiling is the test.
#include "abi/0.2/freeze.h"

int main() { return 0; }
