import assert from 'node:assert/strict';
import test from 'node:test';
import { countPrimes } from './logic.js';

test('there are 25 primes below 100', () => {
  assert.equal(countPrimes(100), 25);
});
