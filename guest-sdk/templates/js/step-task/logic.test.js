import assert from 'node:assert/strict';
import test from 'node:test';
import { advance, begin } from './logic.js';

test('there are 303 primes below 2000, and they take two steps', () => {
  const state = begin(2000);
  assert.equal(advance(state), false);
  assert.equal(advance(state), true);
  assert.equal(state.primes, 303);
});
