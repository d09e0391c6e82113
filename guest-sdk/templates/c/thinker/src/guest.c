// What the host calls; the header is generated from `wit/`. Many NPCs are thought in one call.
#include "logic.h"
#include "thinker.h"

#include <stdlib.h>

static struct state state;

bool exports_thinker_init(thinker_string_t *config, thinker_occasion_t occasion, thinker_string_t *err) {
    thinker_string_free(config);
    return true;
}

void exports_thinker_think(uint64_t now, thinker_list_npc_t *npcs, thinker_list_sighting_t *seen,
                           thinker_list_intent_t *ret) {
    state.thoughts += 1;
    // Allocated also where it is empty: a list must be aligned.
    ret->ptr = malloc((npcs->len + 1) * sizeof *ret->ptr);
    ret->len = npcs->len;
    for (size_t i = 0; i < npcs->len; i++) {
        thinker_npc_t npc = npcs->ptr[i];
        struct place player, *nearest = NULL;
        // What it sees comes nearest first.
        for (uint32_t at = npc.seen_first; at < npc.seen_first + npc.seen_count && !nearest; at++) {
            if (seen->ptr[at].traits & WHEELHOUSE_SIM_THINKING_TRAITS_PLAYER) {
                player = (struct place){seen->ptr[at].x, seen->ptr[at].y};
                nearest = &player;
            }
        }
        struct place there = decide(&state, (struct place){npc.x, npc.y}, nearest);
        ret->ptr[i] = (thinker_intent_t){
            .npc = npc.id, .action = WHEELHOUSE_SIM_THINKING_ACTION_MOVE, .x = there.x, .y = there.y};
    }
    // Not by `free`: where a list is empty, its pointer leads to nothing.
    thinker_list_npc_free(npcs);
    thinker_list_sighting_free(seen);
}

void exports_wheelhouse_sim_lifecycle_save(thinker_list_u8_t *ret) {
    // The host's side of the call frees it.
    ret->ptr = malloc(STATE_BYTES);
    ret->len = state_encode(&state, ret->ptr);
}

bool exports_wheelhouse_sim_lifecycle_restore(thinker_list_u8_t *bytes, thinker_string_t *err) {
    bool is_known = state_decode(&state, bytes->ptr, bytes->len);
    thinker_list_u8_free(bytes);
    if (!is_known) thinker_string_dup(err, "this state is of a version that is not known");
    return is_known;
}
