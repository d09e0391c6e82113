import unittest

import logic


class Counting(unittest.TestCase):
    def test_what_is_added_is_in_the_sum(self):
        state = logic.begin()
        self.assertEqual(logic.answer(state, "add 5"), "5")
        self.assertEqual(logic.answer(state, "add 7"), "12")
        self.assertEqual(logic.answer(state, ""), "12")
        self.assertRaises(ValueError, logic.answer, state, "add x")

    def test_what_is_saved_comes_back(self):
        self.assertEqual(logic.decode(logic.encode({"sum": 7})), {"sum": 7})


if __name__ == "__main__":
    unittest.main()
