import assert from 'node:assert/strict';
import test from 'node:test';
import { decide, decode, encode, WOLF } from './logic.js';

const hare = { id: 4n, x: 5, y: 5 };

test('a hare hops in a circle', () => {
  const places = [0, 1, 2, 3].map((thoughts) => decide({ thoughts }, hare, []));
  assert.deepEqual(places, [{ x: 6, y: 5 }, { x: 5, y: 6 }, { x: 4, y: 5 }, { x: 5, y: 4 }]);
});

test('a hare runs from wolves and not from sheep', () => {
  const seen = [{ kind: 2, x: 5, y: 6 }, { kind: WOLF, x: 6, y: 5 }];
  assert.deepEqual(decide({ thoughts: 0 }, hare, seen), { x: 3, y: 7 });
});

test('what is saved comes back', () => {
  assert.deepEqual(decode(encode({ thoughts: 7 })), { thoughts: 7 });
});
