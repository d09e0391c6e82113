// What the host calls. A handler that throws is undone as a whole; throwing a text refuses on purpose and keeps the guest.
import { send } from 'wheelhouse:sim/gate@0.1.0';
import { write } from 'wheelhouse:sim/log@0.1.0';
import { answer, begin, decode, encode } from './logic.js';

let state = begin();

// `config` is this guest's table of the configuration as JSON; `occasion` is first, resumed, replaced or swapped.
export function init(config, occasion) {
  write('info', `the visitor book is open (${occasion})`);
}

export function onPacket(connection, packet) {
  const line = answer(state, new TextDecoder().decode(packet));
  if (line === undefined) return;
  try {
    send(connection, new TextEncoder().encode(line));
  } catch (error) {
    // The client is gone already, as a rule. The error as it is would be none of this handler's, and fail the game.
    throw `the answer could not be sent: ${error.payload?.tag ?? error}`;
  }
}

export function onConnect(connection, address) {}
export function onDisconnect(connection) {}
export function onTimer(id, name, payload, missed) {}
export function onEvent(event) {}
export function onMessage(message) {
  return new Uint8Array();
}
export function onReply(session, answer) {}
export function onTask(id, outcome) {}
export function onIntent(intent) {}

export const lifecycle = {
  save() {
    return encode(state);
  },
  restore(bytes) {
    try {
      state = decode(bytes);
    } catch (error) {
      throw String(error);
    }
  },
};
