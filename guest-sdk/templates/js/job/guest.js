// What the host calls. It may take as long as it needs: the host suspends it and goes on with it as there is time.
import { countPrimes } from './logic.js';

export function run(argument) {
  const primes = countPrimes(Number(new TextDecoder().decode(argument)));
  return new TextEncoder().encode(String(primes));
}

// A job ends with its host, and on the code that it was started with: there is nothing to carry.
export const lifecycle = {
  save() {
    return new Uint8Array();
  },
  restore(bytes) {},
};
