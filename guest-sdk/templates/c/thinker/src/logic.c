#include "logic.h"

#include <string.h>

static int32_t sign(int32_t number) { return (number > 0) - (number < 0); }

struct place decide(const struct state *state, struct place npc, const struct place *player) {
    if (player) return (struct place){npc.x + sign(npc.x - player->x), npc.y + sign(npc.y - player->y)};
    return (struct place){npc.x + (state->thoughts % 2 == 0 ? 1 : -1), npc.y};
}

enum { VERSION = 1 };

size_t state_encode(const struct state *state, uint8_t bytes[STATE_BYTES]) {
    bytes[0] = VERSION;
    memcpy(bytes + 1, &state->thoughts, sizeof state->thoughts);
    return STATE_BYTES;
}

bool state_decode(struct state *state, const uint8_t *bytes, size_t length) {
    if (length != STATE_BYTES || bytes[0] != VERSION) return false;
    memcpy(&state->thoughts, bytes + 1, sizeof state->thoughts);
    return true;
}
