"""The work, which knows nothing of the host: this is what the tests test."""


def count_primes(limit: int) -> int:
    return sum(is_prime(number) for number in range(2, limit))


def is_prime(number: int) -> bool:
    divisor = 2
    while divisor * divisor <= number:
        if number % divisor == 0:
            return False
        divisor += 1
    return True
