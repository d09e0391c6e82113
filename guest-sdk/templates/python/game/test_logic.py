import unittest

import logic


class VisitorBook(unittest.TestCase):
    def test_visitors_are_counted(self):
        state = logic.begin()
        self.assertEqual(logic.answer(state, "hello"), "you are visitor 1")
        self.assertEqual(logic.answer(state, "hello"), "you are visitor 2")
        self.assertIsNone(logic.answer(state, "goodbye"))

    def test_what_is_saved_comes_back(self):
        self.assertEqual(logic.decode(logic.encode({"visitors": 7})), {"visitors": 7})


if __name__ == "__main__":
    unittest.main()
