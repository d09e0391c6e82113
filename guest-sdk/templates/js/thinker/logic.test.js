import assert from 'node:assert/strict';
import test from 'node:test';
import { decide, decode, encode } from './logic.js';

const npc = { x: 5, y: 5 };

test('an NPC that sees nobody paces to and fro', () => {
  assert.deepEqual(decide({ thoughts: 2 }, npc, []), { x: 6, y: 5 });
  assert.deepEqual(decide({ thoughts: 3 }, npc, []), { x: 4, y: 5 });
});

test('an NPC runs from players and not from others', () => {
  const sheep = { x: 4, y: 5, traits: { player: false } };
  const player = { x: 5, y: 7, traits: { player: true } };
  assert.deepEqual(decide({ thoughts: 2 }, npc, [sheep, player]), { x: 5, y: 4 });
});

test('what is saved comes back', () => {
  assert.deepEqual(decode(encode({ thoughts: 7 })), { thoughts: 7 });
});
