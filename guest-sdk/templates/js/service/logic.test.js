import assert from 'node:assert/strict';
import test from 'node:test';
import { answer, begin, decode, encode } from './logic.js';

test('what is added is in the sum', () => {
  const state = begin();
  assert.equal(answer(state, 'add 5'), '5');
  assert.equal(answer(state, 'add 7'), '12');
  assert.equal(answer(state, ''), '12');
  assert.throws(() => answer(state, 'add x'));
});

test('what is saved comes back', () => {
  assert.deepEqual(decode(encode({ sum: 7 })), { sum: 7 });
});
