// The forecast of Meadow, in C: what the host calls. The header is generated from `wit/`.
#include "logic.h"
#include "step_task.h"

#include <stdio.h>
#include <stdlib.h>

static struct forecast forecast;

bool exports_step_task_start(step_task_list_u8_t *arguments, step_task_string_t *err) {
    bool is_number = forecast_begin(&forecast, (const char *)arguments->ptr, arguments->len);
    step_task_list_u8_free(arguments);
    if (!is_number) step_task_string_dup(err, "a forecast is for a number of days, at most ten million");
    return is_number;
}

void exports_step_task_step(uint64_t timeslice_ns, step_task_step_result_t *ret) {
    ret->tag = WHEELHOUSE_SIM_STEPPING_STEP_RESULT_IN_PROGRESS;
    if (!forecast_advance(&forecast)) return;
    char *text = malloc(64);
    ret->tag = WHEELHOUSE_SIM_STEPPING_STEP_RESULT_FINISHED;
    ret->val.finished.ptr = (uint8_t *)text;
    ret->val.finished.len = (size_t)snprintf(text, 64, "rain on %u of %u days", forecast.rainy, forecast.days);
}

// A task ends with its host, and on the code that it was started with: there is nothing to carry.
void exports_wheelhouse_sim_lifecycle_save(step_task_list_u8_t *ret) {
    ret->ptr = malloc(1);
    ret->len = 0;
}

bool exports_wheelhouse_sim_lifecycle_restore(step_task_list_u8_t *bytes, step_task_string_t *err) {
    step_task_list_u8_free(bytes);
    return true;
}
