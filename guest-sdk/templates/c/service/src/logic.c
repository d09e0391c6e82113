#include "logic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t answer(struct state *state, const char *message, size_t length, char answer[MAX_ANSWER_BYTES]) {
    char text[MAX_ANSWER_BYTES] = "";
    memcpy(text, message, length < sizeof text ? length : sizeof text - 1);
    if (strncmp(text, "add ", 4) == 0) state->sum += strtoll(text + 4, NULL, 10);
    return (size_t)snprintf(answer, MAX_ANSWER_BYTES, "%lld", (long long)state->sum);
}

enum { VERSION = 1 };

size_t state_encode(const struct state *state, uint8_t bytes[STATE_BYTES]) {
    bytes[0] = VERSION;
    memcpy(bytes + 1, &state->sum, sizeof state->sum);
    return STATE_BYTES;
}

bool state_decode(struct state *state, const uint8_t *bytes, size_t length) {
    if (length != STATE_BYTES || bytes[0] != VERSION) return false;
    memcpy(&state->sum, bytes + 1, sizeof state->sum);
    return true;
}
