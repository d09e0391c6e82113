import unittest

import logic


class Counting(unittest.TestCase):
    def test_there_are_78_primes_below_400_and_they_take_two_steps(self):
        work = logic.Primes(400)
        self.assertFalse(work.advance())
        self.assertTrue(work.advance())
        self.assertEqual(work.count, 78)


if __name__ == "__main__":
    unittest.main()
