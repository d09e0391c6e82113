#undef NDEBUG
#include "logic.h"

#include <assert.h>
#include <stdio.h>

int main(void) {
    struct forecast forecast;
    assert(forecast_begin(&forecast, "100000", 6));
    assert(!forecast_advance(&forecast) && forecast_advance(&forecast));
    assert(forecast.rainy > 24000 && forecast.rainy < 26000);
    assert(!forecast_begin(&forecast, "many", 4) && !forecast_begin(&forecast, "", 0));
    puts("all is well");
}
