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
  if (line !== undefined) send(connection, new TextEncoder().encode(line));
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
    state = decode(bytes);
  },
};
