import unittest

import logic


class Flying(unittest.TestCase):
    def test_a_crow_that_sees_nothing_of_interest_goes_its_way(self):
        self.assertEqual(logic.decide({"thoughts": 0}, 0, 5, 5, [(2, 5, 6)]), (7, 5))

    def test_a_crow_circles_around_players_and_crops(self):
        self.assertEqual(logic.decide({"thoughts": 2}, 0, 5, 5, [(2, 5, 6), (logic.CROP, 9, 9)]), (9, 11))

    def test_what_is_saved_comes_back(self):
        self.assertEqual(logic.decode(logic.encode({"thoughts": 7})), {"thoughts": 7})


if __name__ == "__main__":
    unittest.main()
