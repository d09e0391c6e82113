"""The work, which knows nothing of the host: this is what the tests test."""

# So many numbers are looked at in a step: a few milliseconds.
NUMBERS_PER_STEP = 200


class Primes:
    """Counts the primes below a limit."""

    def __init__(self, limit: int):
        self.next, self.limit, self.count = 2, limit, 0

    def advance(self) -> bool:
        """Does a little more; true when all is done."""
        until = min(self.limit, self.next + NUMBERS_PER_STEP)
        self.count += sum(is_prime(number) for number in range(self.next, until))
        self.next = until
        return until >= self.limit


def is_prime(number: int) -> bool:
    divisor = 2
    while divisor * divisor <= number:
        if number % divisor == 0:
            return False
        divisor += 1
    return True
