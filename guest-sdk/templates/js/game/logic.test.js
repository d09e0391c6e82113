import assert from 'node:assert/strict';
import test from 'node:test';
import { answer, begin, decode, encode } from './logic.js';

test('visitors are counted', () => {
  const state = begin();
  assert.equal(answer(state, 'hello'), 'you are visitor 1');
  assert.equal(answer(state, 'hello'), 'you are visitor 2');
  assert.equal(answer(state, 'goodbye'), undefined);
});

test('what is saved comes back', () => {
  assert.deepEqual(decode(encode({ visitors: 7 })), { visitors: 7 });
});
