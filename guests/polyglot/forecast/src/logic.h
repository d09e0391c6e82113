#pragma once
// The weather of Meadow, which knows nothing of the host.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct forecast {
    uint32_t day, days, rainy;
    // What the weather is drawn from.
    uint64_t random;
};

// Begins a forecast for so many days, given as text; false where that is no number of days.
bool forecast_begin(struct forecast *forecast, const char *days, size_t length);

// Looks some days ahead; true when all are done.
bool forecast_advance(struct forecast *forecast);
