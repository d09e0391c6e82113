// What the host calls: `start` once, and then `step` in what each frame leaves over, until it says that it has finished.
import { advance, begin } from './logic.js';

let state;

export function start(argument) {
  state = begin(Number(new TextDecoder().decode(argument)));
}

export function step(timesliceNs) {
  if (!advance(state)) return { tag: 'in-progress' };
  return { tag: 'finished', val: new TextEncoder().encode(String(state.primes)) };
}

// A task ends with its host, and on the code that it was started with: there is nothing to carry.
export const lifecycle = {
  save() {
    return new Uint8Array();
  },
  restore(bytes) {},
};
