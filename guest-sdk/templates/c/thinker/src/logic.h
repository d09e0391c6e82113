#pragma once
// What the guest does, which knows nothing of the host: this is what the tests test.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct state {
    uint64_t thoughts;
};

struct place {
    int32_t x, y;
};

enum { STATE_BYTES = 1 + sizeof(uint64_t) };

// Where an NPC goes that stands there, and sees a player or none.
struct place decide(const struct state *state, struct place npc, const struct place *player);

// What this guest remembers, as bytes: a version, which says how to read the rest, and the number. Raise the version when
// the form changes, and keep reading the older ones.
size_t state_encode(const struct state *state, uint8_t bytes[STATE_BYTES]);
bool state_decode(struct state *state, const uint8_t *bytes, size_t length);
