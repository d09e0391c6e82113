// What the host calls: one message after another.
import { write } from 'wheelhouse:sim/log@0.1.0';
import { answer, begin, decode, encode } from './logic.js';

let state = begin();

// `config` is this guest's table of the configuration as JSON, `argument` what it was launched with.
export function init(config, argument) {
  write('info', 'the counter begins');
}

export function handle(message) {
  return new TextEncoder().encode(answer(state, new TextDecoder().decode(message.payload)));
}

// At a swap `restore` is called in place of `init`.
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
