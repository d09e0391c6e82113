#pragma once
// What the guest does, which knows nothing of the host: this is what the tests test.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Counts the primes below a limit; false where the argument is no number.
bool count_primes(uint32_t *count, const char *argument, size_t length);
