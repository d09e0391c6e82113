#pragma once
// What the guest does, which knows nothing of the host: this is what the tests test.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct state {
    int64_t sum;
};

enum { STATE_BYTES = 1 + sizeof(int64_t), MAX_ANSWER_BYTES = 32 };

// The answer to a message: `add NUMBER` adds, anything else asks for the sum. Answers how long it is.
size_t answer(struct state *state, const char *message, size_t length, char answer[MAX_ANSWER_BYTES]);

// What this guest remembers, as bytes: a version, which says how to read the rest, and the number. Raise the version when
// the form changes, and keep reading the older ones.
size_t state_encode(const struct state *state, uint8_t bytes[STATE_BYTES]);
bool state_decode(struct state *state, const uint8_t *bytes, size_t length);
