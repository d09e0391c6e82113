// What the host calls: many NPCs are thought in one call. Ids are BigInt.
import { write } from 'wheelhouse:sim/log@0.1.0';
import { begin, decide, decode, encode } from './logic.js';

let state = begin();

// `config` is this guest's table of the configuration as JSON; `occasion` is first, resumed, replaced or swapped.
export function init(config, occasion) {
  write('debug', `the thinker begins (${occasion})`);
}

export function think(now, npcs, seen) {
  state.thoughts += 1;
  return npcs.map((npc) => {
    const { x, y } = decide(state, npc, seen.slice(npc.seenFirst, npc.seenFirst + npc.seenCount));
    return { npc: npc.id, action: 'move', x, y, target: 0n, argument: 0 };
  });
}

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
