// What an NPC decides, which knows nothing of the host: this is what the tests test.

export function begin() {
  return { thoughts: 0 };
}

// Where an NPC goes. `seen` is what it sees, nearest first.
export function decide(state, npc, seen) {
  const player = seen.find((sighting) => sighting.traits.player);
  if (player) return { x: npc.x + Math.sign(npc.x - player.x), y: npc.y + Math.sign(npc.y - player.y) };
  return { x: npc.x + (state.thoughts % 2 === 0 ? 1 : -1), y: npc.y };
}

// What this guest remembers, as bytes. The version says how to read them: raise it when the form changes, and keep
// reading the older ones.
export function encode(state) {
  return new TextEncoder().encode(JSON.stringify({ version: 1, ...state }));
}

export function decode(bytes) {
  const { version, ...state } = JSON.parse(new TextDecoder().decode(bytes));
  if (version !== 1) throw `there is no way to read version ${version} of the state`;
  return state;
}
