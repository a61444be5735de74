import {
  agentsOfAnIssuer,
  burstOfAKey,
  bytesOfAKey,
  crowd,
  displacing,
  fillPending,
  overRate,
  sessionsToAll,
  slowAgent,
  takeovers,
} from "./attackers/agents.ts";
import { burstsOf, churn, compressed, fragments, pings, pingsOfAKey, withoutAKey } from "./attackers/frames.ts";
import {
  feedback,
  guessedApiKeys,
  guidesToAll,
  idempotencyKeys,
  idle,
  idleAtFewFiles,
  journeys,
  leaving,
  presenceOfAll,
  readsOfDocuments,
  readsOfReports,
  slowRequests,
  unread,
} from "./attackers/http.ts";
import { neighbour } from "./attackers/onslaught.ts";
import type { Attack } from "./witnesses.ts";
import {
  escapedNames,
  fewFiles,
  fullRedis,
  latestJourneys,
  pendingOfAnother,
  replacedKey,
  replayedDecision,
  twoHosts,
} from "./witnesses.ts";

/** Every attack that the relay is held against, in the order in which they are launched. The first is none: what it costs, the machine costs. */
export const ATTACKS: readonly Attack[] = [
  {
    name: "a neighbour that computes",
    stoppedBy: "no attack: what bystanders notice on this machine when another process computes",
    attacker: neighbour,
  },
  {
    name: "200 connections without a key",
    stoppedBy:
      "key and size are looked at before schema and canonical form; 8 frames and 64 KiB before the first valid envelope; a tenth of the event loop for all such connections together",
    reaches: ["unregistered_intake"],
    attacker: withoutAKey,
  },
  {
    name: "one connection far over its rate",
    stoppedBy: "it is not read until its next token",
    reaches: ["envelopes"],
    attacker: overRate,
  },
  {
    name: "bytes of one key over 60 connections",
    stoppedBy: "the bytes of a key, over all its connections",
    reaches: ["key_bytes"],
    attacker: bytesOfAKey,
  },
  {
    name: "a burst of one key over 200 connections",
    stoppedBy: "the rate of a key, over all its connections",
    reaches: ["key_envelopes"],
    attacker: burstOfAKey,
  },
  {
    name: "one key, sessions to ever new targets",
    stoppedBy: "pending sessions of a key, requests of a requester in a minute",
    reaches: ["opened_sessions"],
    attacker: sessionsToAll,
  },
  {
    name: "200 requests to an absent target",
    stoppedBy: "10 pending of one requester at one target; where a target is full, who has the most there gives way",
    attacker: fillPending,
    witness: pendingOfAnother,
  },
  {
    name: "500 requesters of one key displace their own sessions",
    stoppedBy: "sessions that a key opens in a minute; what gave way ends then",
    reaches: ["key_opened_sessions"],
    attacker: displacing,
  },
  {
    name: "300 × 30 KB to an agent behind 2 MB/s",
    stoppedBy: "a recipient that is behind is marked congested: acks say stale, what was accepted before is kept",
    attacker: slowAgent,
  },
  {
    name: "3,000 agents of one key",
    stoppedBy: "agents of a namespace key",
    reaches: ["agents_per_key"],
    attacker: crowd,
  },
  {
    name: "160 agents of one issuer over 4 connections",
    stoppedBy:
      "sessions that each agent opens in a minute, and its share of those of the issuer; the rates of a connection",
    reaches: ["opened_sessions"],
    attacker: agentsOfAnIssuer,
  },
  {
    name: "4,000 idle HTTP connections",
    stoppedBy: "HTTP connections of a process: the one idle longest is closed",
    reaches: ["http_connections"],
    attacker: idle,
  },
  {
    name: "4,000 idle HTTP connections, 1,200 files",
    stoppedBy: "never more connections than there are file descriptors for",
    reaches: ["http_connections"],
    attacker: idleAtFewFiles,
    witness: fewFiles,
  },
  {
    name: "member names with escapes",
    stoppedBy: "names with escapes are read by a parser of our own",
    witness: escapedNames,
  },
  {
    name: "a key replaced under its id",
    stoppedBy: "keys are told apart by what they are: who registered under the old one is released",
    witness: replacedKey,
  },
  {
    name: "a decision that replays a message",
    stoppedBy: "the guard judges a decision before it takes effect",
    witness: replayedDecision,
  },
  {
    name: "two Host fields",
    stoppedBy: "refused with 400",
    witness: twoHosts,
  },
  {
    name: "compressed frames",
    stoppedBy: "compression is never agreed on; a frame that claims it ends its connection",
    attacker: compressed,
  },
  {
    name: "a flood of pings",
    stoppedBy: "a ping costs its key what an envelope costs; beyond its own rate of pings a connection is closed",
    reaches: ["key_envelopes"],
    attacker: pings,
  },
  {
    name: "190 pings a second on each of 900 connections of one key",
    stoppedBy: "a ping costs its key what an envelope costs; one pong for what comes in one read",
    reaches: ["key_envelopes"],
    attacker: pingsOfAKey,
  },
  {
    name: "64 KiB of pings at once on each of 900 connections of one key",
    stoppedBy: "bytes of a key are paid before they are looked at; frames behind the first one without a token wait",
    reaches: ["key_bytes"],
    forMs: 8000,
    attacker: burstsOf("pings"),
  },
  {
    name: "64 KiB of empty texts at once on each of 900 connections of one key",
    stoppedBy: "bytes of a key are paid before they are looked at; frames behind the first one without a token wait",
    reaches: ["key_bytes"],
    forMs: 8000,
    attacker: burstsOf("texts"),
  },
  {
    name: "messages of one-byte fragments",
    stoppedBy: "a message has at most 32,768 bytes, and 1,024 fragments",
    attacker: fragments,
  },
  {
    name: "1,000 connections opened and dropped a second",
    stoppedBy: "connections that an address opens in a minute",
    reaches: ["address_opens"],
    attacker: churn,
  },
  {
    name: "thousands of takeovers of one agent",
    stoppedBy: "the rate of a connection and of a key",
    reaches: ["key_envelopes"],
    attacker: takeovers,
  },
  {
    name: "400 connections of one address read reports",
    stoppedBy:
      "addresses take turns; one request of each begins in a turn of the event loop, more only while turns are short",
    attacker: readsOfReports,
  },
  {
    name: "400 connections of one address read documents",
    stoppedBy:
      "addresses take turns; one request of each begins in a turn of the event loop, more only while turns are short",
    attacker: readsOfDocuments,
  },
  {
    name: "journeys from thousands of addresses",
    stoppedBy: "200 journeys, the oldest give way; counts are gathered and written ten times a second",
    attacker: journeys,
    witness: latestJourneys,
  },
  {
    name: "presence of ever new agents",
    stoppedBy: "look-ups of an address in a minute; nothing is kept of who was never seen",
    reaches: ["check_online"],
    attacker: presenceOfAll,
  },
  {
    name: "guides for ever new targets",
    stoppedBy: "guides with a target of an address in a minute; reads are kept for 1,000 targets",
    reaches: ["target_reads"],
    attacker: guidesToAll,
  },
  {
    name: "Idempotency-Keys ever new, of 40 API keys",
    stoppedBy: "requests of an API key in a minute",
    reaches: ["api_key_requests"],
    attacker: idempotencyKeys,
  },
  {
    name: "a flood of feedback",
    stoppedBy: "feedback of an address in a minute; labels of a closed set, texts dropped",
    reaches: ["feedback"],
    attacker: feedback,
  },
  {
    name: "guessed API keys",
    stoppedBy: "unknown keys of an address in a minute, before anything else is looked at",
    reaches: ["failed_keys"],
    attacker: guessedApiKeys,
  },
  {
    name: "1,500 requests that never end",
    stoppedBy: "a header is due within 5 s, a request within 10 s",
    forMs: 14_000,
    attacker: slowRequests,
  },
  {
    name: "long answers that nobody reads",
    stoppedBy: "one answer at a time on a connection, 16 requests may wait for theirs; beyond it is closed",
    reaches: ["http_waiting_requests"],
    attacker: unread,
  },
  {
    name: "upgrades and CONNECT behind open answers",
    stoppedBy: "who asks to leave HTTP before its answers are taken is closed",
    attacker: leaving,
  },
  {
    name: "Redis filled to its limit",
    stoppedBy:
      "from three quarters on new sessions, Idempotency-Keys and agents give way, so that those who are present go on",
    reaches: ["redis_memory"],
    witness: fullRedis,
    allows: [
      ...["session over_capacity", "session unavailable", "message unavailable", "heartbeat unavailable"],
      ...["gateway 503", "presence 503"],
    ],
  },
];
