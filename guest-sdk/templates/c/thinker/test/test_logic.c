#undef NDEBUG
#include "logic.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    struct state state = {2}, restored = {0};
    struct place npc = {5, 5}, player = {5, 7};
    struct place there = decide(&state, npc, NULL);
    assert(there.x == 6 && there.y == 5);
    there = decide(&state, npc, &player);
    assert(there.x == 5 && there.y == 4);

    uint8_t bytes[STATE_BYTES];
    assert(state_decode(&restored, bytes, state_encode(&state, bytes)) && restored.thoughts == 2);
    puts("all is well");
}
