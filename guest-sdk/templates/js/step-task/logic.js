// The work, which knows nothing of the host: this is what the tests test.

// So many numbers are looked at in a step: a millisecond or two.
const NUMBERS_PER_STEP = 1000;

export function begin(limit) {
  if (!Number.isSafeInteger(limit)) throw 'the argument must be a number';
  return { next: 2, limit, primes: 0 };
}

// Does a little more; true when all is done.
export function advance(state) {
  const until = Math.min(state.limit, state.next + NUMBERS_PER_STEP);
  for (; state.next < until; state.next += 1) {
    if (isPrime(state.next)) state.primes += 1;
  }
  return state.next >= state.limit;
}

function isPrime(number) {
  for (let divisor = 2; divisor * divisor <= number; divisor += 1) {
    if (number % divisor === 0) return false;
  }
  return true;
}
