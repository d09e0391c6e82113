#include "logic.h"

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

bool count_primes(uint32_t *count, const char *argument, size_t length) {
    uint32_t limit;
    if (!parse(&limit, argument, length)) return false;
    *count = 0;
    for (uint32_t number = 2; number < limit; number++) *count += is_prime(number);
    return true;
}
