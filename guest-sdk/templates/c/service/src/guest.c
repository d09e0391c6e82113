// What the host calls; the header is generated from `wit/`: one message after another. At a swap `restore` is called in
// place of `init`.
#include "logic.h"
#include "service.h"

#include <stdlib.h>

static struct state state;

bool exports_service_init(service_string_t *config, service_list_u8_t *arguments, service_string_t *err) {
    service_string_free(config);
    service_list_u8_free(arguments);
    return true;
}

bool exports_service_handle(service_message_t *message, service_list_u8_t *ret, service_string_t *err) {
    ret->ptr = malloc(MAX_ANSWER_BYTES);
    ret->len = answer(&state, (const char *)message->payload.ptr, message->payload.len, (char *)ret->ptr);
    service_message_free(message);
    return true;
}

void exports_wheelhouse_sim_lifecycle_save(service_list_u8_t *ret) {
    // The host's side of the call frees it.
    ret->ptr = malloc(STATE_BYTES);
    ret->len = state_encode(&state, ret->ptr);
}

bool exports_wheelhouse_sim_lifecycle_restore(service_list_u8_t *bytes, service_string_t *err) {
    bool is_known = state_decode(&state, bytes->ptr, bytes->len);
    service_list_u8_free(bytes);
    if (!is_known) service_string_dup(err, "this state is of a version that is not known");
    return is_known;
}
