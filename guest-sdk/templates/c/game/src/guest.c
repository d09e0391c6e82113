// What the host calls; the header is generated from `wit/`. A handler that returns false refuses and is undone as a whole.
// What it is handed is its own, and is freed here, by the functions of the header: they know what there is to free.
#include "game.h"
#include "logic.h"

#include <stdlib.h>
#include <string.h>

static struct state state;

bool exports_game_init(game_string_t *config, game_occasion_t occasion, game_string_t *err) {
    game_string_free(config);
    return true;
}

bool exports_game_on_packet(game_connection_id_t connection, game_list_u8_t *packet, game_string_t *err) {
    char line[MAX_ANSWER_BYTES];
    bool is_answered = answer(&state, (const char *)packet->ptr, packet->len, line);
    game_list_u8_free(packet);
    if (!is_answered) return true;
    game_list_u8_t sent = {(uint8_t *)line, strlen(line)};
    wheelhouse_sim_gate_gate_error_t error;
    if (wheelhouse_sim_gate_send(connection, &sent, &error)) return true;
    game_string_dup(err, "the answer could not be sent");
    return false;
}

bool exports_game_on_connect(game_connection_id_t connection, game_string_t *address, game_string_t *err) {
    game_string_free(address);
    return true;
}

bool exports_game_on_disconnect(game_connection_id_t connection, game_string_t *err) { return true; }

bool exports_game_on_timer(game_timer_id_t id, game_string_t *name, game_list_u8_t *payload, uint32_t missed,
                           game_string_t *err) {
    game_string_free(name);
    game_list_u8_free(payload);
    return true;
}

bool exports_game_on_event(game_due_event_t *event, game_string_t *err) {
    game_due_event_free(event);
    return true;
}

bool exports_game_on_message(game_message_t *message, game_list_u8_t *ret, game_string_t *err) {
    game_message_free(message);
    game_string_dup(err, "this game takes no messages");
    return false;
}

bool exports_game_on_reply(game_session_t session, game_result_list_u8_service_error_t *answer, game_string_t *err) {
    game_result_list_u8_service_error_free(answer);
    return true;
}

bool exports_game_on_task(game_task_id_t id, game_result_list_u8_task_failure_t *outcome, game_string_t *err) {
    game_result_list_u8_task_failure_free(outcome);
    return true;
}

bool exports_game_on_intent(game_intent_t *intent, game_string_t *err) { return true; }

void exports_wheelhouse_sim_lifecycle_save(game_list_u8_t *ret) {
    // The host's side of the call frees it.
    ret->ptr = malloc(STATE_BYTES);
    ret->len = state_encode(&state, ret->ptr);
}

bool exports_wheelhouse_sim_lifecycle_restore(game_list_u8_t *bytes, game_string_t *err) {
    bool is_known = state_decode(&state, bytes->ptr, bytes->len);
    game_list_u8_free(bytes);
    if (!is_known) game_string_dup(err, "this state is of a version that is not known");
    return is_known;
}
