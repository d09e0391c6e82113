#undef NDEBUG
#include "logic.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    uint32_t count;
    assert(count_primes(&count, "100", 3) && count == 25);
    assert(!count_primes(&count, "many", 4));
    puts("all is well");
}
