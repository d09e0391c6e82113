// What a hare decides: it hops about, and runs from wolves, twice as far as it hops.

export const WOLF = 3;

export function begin() {
  return { thoughts: 0 };
}

// Where a hare goes. `seen` is what it sees, nearest first.
export function decide(state, npc, seen) {
  const wolf = seen.find((sighting) => sighting.kind === WOLF);
  if (wolf) return { x: npc.x + 2 * away(npc.x, wolf.x), y: npc.y + 2 * away(npc.y, wolf.y) };
  // Each hare turns at another thought than its neighbours.
  const turn = (state.thoughts + Number(npc.id % 4n)) % 4;
  const [dx, dy] = [[1, 0], [0, 1], [-1, 0], [0, -1]][turn];
  return { x: npc.x + dx, y: npc.y + dy };
}

function away(own, other) {
  return Math.sign(own - other) || 1;
}

// The version says how to read what is saved.
export function encode(state) {
  return new TextEncoder().encode(JSON.stringify({ version: 1, ...state }));
}

export function decode(bytes) {
  const { version, ...state } = JSON.parse(new TextDecoder().decode(bytes));
  if (version !== 1) throw `there is no way to read version ${version} of the state`;
  return state;
}
