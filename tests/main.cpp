// SPDX-License-Identifier: Apache-2.0
// The main function of every C++ test program: slow to compile, so once for all of them.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
