// The work, which knows nothing of the host: this is what the tests test.

export function countPrimes(limit) {
  if (!Number.isSafeInteger(limit)) throw 'the argument must be a number';
  let primes = 0;
  for (let number = 2; number < limit; number += 1) {
    if (isPrime(number)) primes += 1;
  }
  return primes;
}

function isPrime(number) {
  for (let divisor = 2; divisor * divisor <= number; divisor += 1) {
    if (number % divisor === 0) return false;
  }
  return true;
}
