// What the host calls; the header is generated from `wit/`. It may take as long as it needs: the host suspends it and goes
// on with it as there is time.
#include "job.h"
#include "logic.h"

#include <stdio.h>
#include <stdlib.h>

bool exports_job_run(job_list_u8_t *arguments, job_list_u8_t *ret, job_string_t *err) {
    uint32_t count;
    bool is_number = count_primes(&count, (const char *)arguments->ptr, arguments->len);
    job_list_u8_free(arguments);
    if (!is_number) {
        job_string_dup(err, "the argument must be a number");
        return false;
    }
    ret->ptr = malloc(16);
    ret->len = (size_t)snprintf((char *)ret->ptr, 16, "%u", count);
    return true;
}

// A task ends with its host, and on the code that it was started with: there is nothing to carry.
void exports_wheelhouse_sim_lifecycle_save(job_list_u8_t *ret) {
    ret->ptr = malloc(1);
    ret->len = 0;
}

bool exports_wheelhouse_sim_lifecycle_restore(job_list_u8_t *bytes, job_string_t *err) {
    job_list_u8_free(bytes);
    return true;
}
