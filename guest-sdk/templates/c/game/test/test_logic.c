#undef NDEBUG
#include "logic.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    struct state state = {0}, restored = {0};
    char line[MAX_ANSWER_BYTES];
    assert(answer(&state, "hello", 5, line) && strcmp(line, "you are visitor 1") == 0);
    assert(answer(&state, "hello", 5, line) && strcmp(line, "you are visitor 2") == 0);
    assert(!answer(&state, "goodbye", 7, line));

    uint8_t bytes[STATE_BYTES];
    assert(state_decode(&restored, bytes, state_encode(&state, bytes)) && restored.visitors == 2);
    bytes[0] = 9;
    assert(!state_decode(&restored, bytes, STATE_BYTES));
    puts("all is well");
}
