import unittest

import logic


class Deciding(unittest.TestCase):
    def test_an_npc_that_sees_nobody_paces_to_and_fro(self):
        self.assertEqual(logic.decide({"thoughts": 2}, 5, 5, []), (6, 5))
        self.assertEqual(logic.decide({"thoughts": 3}, 5, 5, []), (4, 5))

    def test_an_npc_runs_from_players(self):
        self.assertEqual(logic.decide({"thoughts": 2}, 5, 5, [(5, 7)]), (5, 4))

    def test_what_is_saved_comes_back(self):
        self.assertEqual(logic.decode(logic.encode({"thoughts": 7})), {"thoughts": 7})


if __name__ == "__main__":
    unittest.main()
