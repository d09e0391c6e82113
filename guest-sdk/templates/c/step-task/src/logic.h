#pragma once
// What the guest does, which knows nothing of the host: this is what the tests test.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct primes {
    uint32_t next, limit, count;
};

// Counts the primes below a limit; false where the argument is no number.
bool primes_begin(struct primes *primes, const char *argument, size_t length);

// Does a little more; true when all is done.
bool primes_advance(struct primes *primes);
