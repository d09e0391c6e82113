import unittest

import logic


class Counting(unittest.TestCase):
    def test_there_are_25_primes_below_100(self):
        self.assertEqual(logic.count_primes(100), 25)


if __name__ == "__main__":
    unittest.main()
