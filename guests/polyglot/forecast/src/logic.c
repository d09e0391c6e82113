#include "logic.h"

// So many days are looked at in a step: less than a millisecond.
enum { DAYS_PER_STEP = 50000, MAX_DAYS = 10000000 };

bool forecast_begin(struct forecast *forecast, const char *days, size_t length) {
    *forecast = (struct forecast){.random = 88172645463325252ull};
    for (size_t i = 0; i < length; i++) {
        if (days[i] < '0' || days[i] > '9' || forecast->days > MAX_DAYS) return false;
        forecast->days = forecast->days * 10 + (uint32_t)(days[i] - '0');
    }
    return length > 0 && forecast->days <= MAX_DAYS;
}

// Xorshift (Marsaglia, "Xorshift RNGs", 2003). One day in four is rainy.
static bool rains(struct forecast *forecast) {
    forecast->random ^= forecast->random << 13;
    forecast->random ^= forecast->random >> 7;
    forecast->random ^= forecast->random << 17;
    return forecast->random % 4 == 0;
}

bool forecast_advance(struct forecast *forecast) {
    for (int looked = 0; looked < DAYS_PER_STEP && forecast->day < forecast->days; looked++, forecast->day++) {
        forecast->rainy += rains(forecast);
    }
    return forecast->day >= forecast->days;
}
