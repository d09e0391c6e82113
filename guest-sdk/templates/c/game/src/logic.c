#include "logic.h"

#include <stdio.h>
#include <string.h>

bool answer(struct state *state, const char *packet, size_t length, char answer[MAX_ANSWER_BYTES]) {
    if (length != strlen("hello") || memcmp(packet, "hello", length) != 0) return false;
    state->visitors += 1;
    snprintf(answer, MAX_ANSWER_BYTES, "you are visitor %llu", (unsigned long long)state->visitors);
    return true;
}

enum { VERSION = 1 };

size_t state_encode(const struct state *state, uint8_t bytes[STATE_BYTES]) {
    bytes[0] = VERSION;
    memcpy(bytes + 1, &state->visitors, sizeof state->visitors);
    return STATE_BYTES;
}

bool state_decode(struct state *state, const uint8_t *bytes, size_t length) {
    if (length != STATE_BYTES || bytes[0] != VERSION) return false;
    memcpy(&state->visitors, bytes + 1, sizeof state->visitors);
    return true;
}
