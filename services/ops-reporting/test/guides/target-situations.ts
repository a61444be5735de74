import type { GuideQuery } from "relay-protocol/contract/reports/guides.ts";
import type { TargetDecision } from "relay-protocol/contract/session.ts";
import type { Presence } from "relay-window/presence/presence.ts";
import type { Target, TargetSession } from "relay-window/sessions/look-ups.ts";
import { proofOf, STARTED_AT, type WholeSource } from "../report-sources.ts";
import * as windows from "./windows.ts";
import {
  AWAY,
  CONGESTED,
  HELD,
  NAMED,
  NEWER_ID,
  ONLINE,
  PROVEN,
  SESSION_ID,
  sessionOf,
  targetOf,
  withSession,
} from "./written.ts";

/** Where alice and bob can stand to each other. */
export interface TargetSituation {
  readonly source: WholeSource;
  readonly target: Target;
  /** The session NEWER_ID, where there is one. */
  readonly newer?: TargetSession;
  /** What alice asks with. */
  readonly query: GuideQuery;
}

const now = STARTED_AT + 60_000;
const NO_PROOF = { ...windows.NO_REQUEST, now };
const ANOTHERS = proofOf({ requester: "agent://carol" });
const PROVEN_BY_ANOTHER = { ...PROVEN, lastOnlineProof: ANOTHERS };
const WITH_SESSION = { ...NAMED, session_id: SESSION_ID };
const before = (target: Target, source: WholeSource = NO_PROOF, query = NAMED): TargetSituation => ({
  source,
  target,
  query,
});
/** The retained proofs name alice's session. */
const proven = (target: Target, query = NAMED): TargetSituation => ({
  source: { ...windows.FRESH, now },
  target,
  query,
});
const provenByAnother = (target: Target, query = NAMED): TargetSituation => ({
  source: { ...windows.FRESH, now, proofs: [ANOTHERS], lastOnlineProof: ANOTHERS },
  target,
  query,
});

const undeliveredSession = (decision: TargetDecision) => sessionOf({ decision, delivery: "stale" });
const displaced = targetOf({ ...PROVEN, session: sessionOf({ decision: "expired", isDisplaced: true }) });
const undelivered = (presence: Presence) => targetOf({ presence, session: undeliveredSession("pending") });
const NEWER = proofOf({ sessionId: NEWER_ID, acceptedAt: STARTED_AT + 1 });
const withNewer: TargetSituation = {
  source: { ...windows.FRESH, now, proofs: [NEWER, proofOf()], lastOnlineProof: NEWER },
  target: { ...displaced, lastOnlineProof: NEWER },
  query: WITH_SESSION,
  newer: sessionOf({ createdAt: STARTED_AT + 1 }),
};

/** Those of the table in docs/protocol.md, by its first cell. */
export const TABLE: Readonly<Record<string, TargetSituation>> = {
  "nobody is online, the window was just reset included": before(targetOf(), { ...windows.EMPTY, now }),
  "never seen": before(targetOf()),
  offline: before(targetOf({ presence: AWAY.offline })),
  stale: before(targetOf({ presence: AWAY.stale })),
  "online, but congested": before(targetOf({ presence: CONGESTED })),
  "online, not held for 90 s": before(targetOf({ presence: ONLINE })),
  "online and held": before(targetOf({ presence: HELD })),
  "fresh proof of another's": provenByAnother(targetOf(PROVEN_BY_ANOTHER)),
  "fresh proof of your own": proven(withSession("pending")),
  "rejected your session": proven(withSession("rejected"), WITH_SESSION),
  "rejected your session, which you do not name": proven(withSession("rejected")),
  "your session with it expired": proven(withSession("expired"), WITH_SESSION),
  "newer sessions took the place of yours": proven(displaced, WITH_SESSION),
  "newer sessions took the place of yours, and you have one of them": withNewer,
  "your request pends": proven(withSession("pending"), WITH_SESSION),
  "your request did not reach it, and it is away": before(undelivered(AWAY.stale), NO_PROOF, WITH_SESSION),
  "your request did not reach it, and it is online by now": before(undelivered(ONLINE), NO_PROOF, WITH_SESSION),
  "your request did not reach it, but another's did": provenByAnother(
    { ...undelivered(ONLINE), lastOnlineProof: ANOTHERS },
    WITH_SESSION,
  ),
  "approved your session, whose request did not reach it, and another's did": provenByAnother(
    targetOf({ ...PROVEN_BY_ANOTHER, session: undeliveredSession("approved") }),
    WITH_SESSION,
  ),
  "approved your session": proven(withSession("approved"), WITH_SESSION),
  "you name a session that it does not have": provenByAnother(targetOf(PROVEN_BY_ANOTHER), WITH_SESSION),
  "you name another's session with it": provenByAnother(withSession("approved", "agent://carol"), WITH_SESSION),
};

/** The same and others: a proof outlives the session and the presence that it was made of. */
export const ALL: Readonly<Record<string, TargetSituation>> = {
  ...TABLE,
  "approved your session, which you do not name": proven(withSession("approved")),
  "approved your session, and its proof expired": {
    ...proven({ ...withSession("approved"), lastOnlineProof: null }, WITH_SESSION),
    source: windows.EXPIRED,
  },
  "newer sessions took the place of yours, and it is away by now": proven(
    { ...displaced, presence: AWAY.offline },
    WITH_SESSION,
  ),
  "your request pends, and its proof expired": {
    ...proven({ ...withSession("pending"), lastOnlineProof: null }, WITH_SESSION),
    source: windows.EXPIRED,
  },
  "your session is no longer kept": proven(targetOf(PROVEN)),
  "fresh proof of another's, and away by now": provenByAnother(
    targetOf({ ...PROVEN_BY_ANOTHER, presence: AWAY.offline }),
  ),
  "fresh proof of your own, and away by now": proven({ ...withSession("pending"), presence: AWAY.stale }),
  "newer sessions took the place of yours, and of the newer one": {
    ...withNewer,
    newer: sessionOf({ decision: "expired", createdAt: STARTED_AT + 1, isDisplaced: true }),
  },
  "your request did not reach it, another's did, and it is away by now": provenByAnother(
    { ...undelivered(AWAY.offline), lastOnlineProof: ANOTHERS },
    WITH_SESSION,
  ),
  "fresh proof of another's, congested, an unknown session": provenByAnother(
    targetOf({ ...PROVEN_BY_ANOTHER, presence: CONGESTED }),
    WITH_SESSION,
  ),
};
