#undef NDEBUG
#include "logic.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    struct primes primes;
    assert(primes_begin(&primes, "20000", 5));
    assert(!primes_advance(&primes) && primes_advance(&primes));
    assert(primes.count == 2262);
    assert(!primes_begin(&primes, "many", 4));
    puts("all is well");
}
