#undef NDEBUG
#include "logic.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    struct state state = {0}, restored = {0};
    char line[MAX_ANSWER_BYTES];
    answer(&state, "add 5", 5, line);
    assert(strcmp(line, "5") == 0);
    answer(&state, "add 7", 5, line);
    answer(&state, "", 0, line);
    assert(strcmp(line, "12") == 0);

    uint8_t bytes[STATE_BYTES];
    assert(state_decode(&restored, bytes, state_encode(&state, bytes)) && restored.sum == 12);
    puts("all is well");
}
