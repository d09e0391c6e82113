#include "logic.h"

// So many numbers are looked at in a step: about a millisecond.
enum { NUMBERS_PER_STEP = 10000 };

static bool is_prime(uint32_t number) {
    for (uint32_t divisor = 2; divisor * divisor <= number; divisor++) {
        if (number % divisor == 0) return false;
    }
    return true;
}

static bool parse(uint32_t *number, const char *text, size_t length) {
    *number = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        *number = *number * 10 + (uint32_t)(text[i] - '0');
    }
    return length > 0 && length < 10;
}

bool primes_begin(struct primes *primes, const char *argument, size_t length) {
    *primes = (struct primes){.next = 2};
    return parse(&primes->limit, argument, length);
}

bool primes_advance(struct primes *primes) {
    uint32_t until = primes->next + NUMBERS_PER_STEP;
    for (; primes->next < until && primes->next < primes->limit; primes->next++) primes->count += is_prime(primes->next);
    return primes->next >= primes->limit;
}
