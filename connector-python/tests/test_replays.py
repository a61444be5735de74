"""Deliveries that come again: the memory of ids, and what is old."""

import random
import unittest
from typing import Any
from unittest.mock import patch

from agent_relay_connector.clock import Clock, machine_ms
from agent_relay_connector.delivered_ids import DeliveredIds
from agent_relay_connector.limits import MAX_DELIVERED_IDS, MAX_SENDERS
from agent_relay_connector.replay_guard import ReplayGuard
from agent_relay_connector.types import Envelope

# Little room, which few deliveries fill.
ROOM: Any = {"MAX_DELIVERED_IDS": 12, "MAX_SENDERS": 4}


def envelope(sender: str, envelope_id: str, ts: int) -> Envelope:
    members: Any = {"from": sender, "id": envelope_id, "ts": ts}
    return members  # type: ignore[no-any-return]


def is_new(ids: DeliveredIds, one: Envelope) -> bool:
    return ids.ts_of(one) is None and not ids.may_have_had(one)


class DeliveredIdsOfSenders(unittest.TestCase):
    def test_never_count_as_new_again_whoever_sends_how_much_and_with_whatever_times(self) -> None:
        for seed in range(300):
            chance = random.Random(seed)
            with patch.multiple("agent_relay_connector.delivered_ids", **ROOM):
                ids = DeliveredIds()
                added: list[Envelope] = []
                for n in range(chance.randrange(100)):
                    ts = chance.choice((n, n, -n, 1000, chance.randrange(50)))
                    one = envelope(chance.choice("aaabcdefg"), f"{n}", ts)
                    if is_new(ids, one):
                        ids.add(one)
                        added.append(one)
                    self.assertEqual([one for one in added if is_new(ids, one)], [], f"seed {seed}")
                    self.assertLessEqual(sum(ids.ts_of(one) == one["ts"] for one in added), ROOM["MAX_DELIVERED_IDS"])

    def test_of_a_sender_that_floods_take_no_others_room_and_make_nothing_of_others_old(self) -> None:
        ids = DeliveredIds()
        first = envelope("alice", "first", 0)
        ids.add(first)
        for n in range(2 * MAX_DELIVERED_IDS):
            ids.add(envelope("mallory", f"{n}", 1_000_000 + n))
        self.assertEqual(ids.ts_of(first), 0)
        self.assertTrue(is_new(ids, envelope("alice", "late", -1)))

    def test_that_come_nearly_in_the_order_of_their_times_are_new_however_many_they_are(self) -> None:
        ids = DeliveredIds()
        for n in range(2 * MAX_DELIVERED_IDS):
            one = envelope("alice", f"{n}", n - n % 64)
            self.assertTrue(is_new(ids, one))
            ids.add(one)

    def test_of_whoever_comes_and_goes_make_nothing_old_of_others_but_of_very_few(self) -> None:
        ids = DeliveredIds()
        for n in range(3 * MAX_SENDERS):
            if n % (MAX_SENDERS // 2) == 0:
                ids.add(envelope("alice", f"{n}", n))
            ids.add(envelope(f"agent://open.sender-{n}", "1", 1_000_000 + n))
        self.assertTrue(is_new(ids, envelope("alice", "next", 3 * MAX_SENDERS)))
        newcomers = [envelope(f"agent://newcomer-{n}", "first", 0) for n in range(1000)]
        self.assertGreater(sum(is_new(ids, one) for one in newcomers), 850)

    def test_of_a_sender_that_was_forgotten_are_not_new_when_it_is_heard_again(self) -> None:
        with patch.multiple("agent_relay_connector.delivered_ids", **ROOM):
            ids = DeliveredIds()
            first = envelope("alice", "1", 5)
            for one in (first, *(envelope(f"sender-{n}", "1", n) for n in range(6)), envelope("alice", "2", 100)):
                ids.add(one)
            self.assertIsNone(ids.ts_of(first))
            self.assertFalse(is_new(ids, first))


def is_pinned(agent: str) -> bool:
    return agent == "agent://a"


class AReplayGuard(unittest.TestCase):
    def envelope(self, **changes: Any) -> Envelope:
        members: Any = {"id": "e-1", "from": "agent://a", "ts": machine_ms(), **changes}
        return members  # type: ignore[no-any-return]

    def test_knows_what_it_remembers_by_sender_and_id(self) -> None:
        guard = ReplayGuard(Clock(), 600, is_pinned)
        for sender in ("agent://a", "agent://b"):
            envelope = self.envelope(**{"from": sender})
            self.assertFalse(guard.is_repeat(envelope))
            guard.remember(envelope)
            self.assertTrue(guard.is_repeat(envelope))
        self.assertFalse(guard.is_repeat(self.envelope(**{"from": "agent://c"})))

    def test_takes_what_is_new_of_a_pinned_agent_however_many_strangers_send(self) -> None:
        guard = ReplayGuard(Clock(), 600, is_pinned)
        for n in range(MAX_SENDERS + 1):
            guard.remember(self.envelope(**{"from": f"agent://x{n}"}, ts=machine_ms() + 300_000))
        self.assertFalse(guard.is_stale(self.envelope()))
        # Not so one of the strangers: it was forgotten to make room for the last.
        self.assertTrue(guard.is_stale(self.envelope(**{"from": "agent://x0"})))

    def test_refuses_what_is_old_or_of_the_future_unless_told_otherwise(self) -> None:
        guard = ReplayGuard(Clock(), 600, is_pinned)
        for age_ms, is_stale in ((0, False), (590_000, False), (610_000, True), (-610_000, True)):
            self.assertEqual(guard.is_stale(self.envelope(ts=machine_ms() - age_ms)), is_stale)
        self.assertFalse(ReplayGuard(Clock(), 0, is_pinned).is_stale(self.envelope(ts=1)))

    def test_cannot_judge_when_the_clocks_are_far_apart(self) -> None:
        clock = Clock()
        clock.measure(machine_ms() + 301_000)
        self.assertFalse(ReplayGuard(clock, 600, is_pinned).can_judge)
        self.assertTrue(ReplayGuard(clock, 0, is_pinned).can_judge)
