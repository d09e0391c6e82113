// Hares of Meadow, in JavaScript: what the host calls.
import { begin, decide, decode, encode } from './logic.js';

let state = begin();

export function init(config, occasion) {}

export function think(now, npcs, seen) {
  state.thoughts += 1;
  return npcs.map((npc) => {
    const { x, y } = decide(state, npc, seen.slice(npc.seenFirst, npc.seenFirst + npc.seenCount));
    return { npc: npc.id, action: 'move', x: Math.max(x, 0), y: Math.max(y, 0), target: 0n, argument: 0 };
  });
}

export const lifecycle = {
  save() {
    return encode(state);
  },
  restore(bytes) {
    state = decode(bytes);
  },
};
