import { PRESENCE_LIMITS } from "protocol/contract/limits.ts";
import { Touches } from "../src/acceptance/touches.ts";
import { CongestionMarks } from "../src/congestion.ts";
import { Counters } from "../src/counters.ts";
import { readCredentials } from "../src/credentials.ts";
import { disconnect } from "../src/disconnect.ts";
import { addFeedback } from "../src/feedback.ts";
import { announceGatewayKey, readGatewayKeys } from "../src/gateway-keys.ts";
import { JourneysCopy } from "../src/journeys.ts";
import { recordPromotions } from "../src/lapses.ts";
import { PodChannel } from "../src/pod-channel.ts";
import { leaseConnections } from "../src/pod-connections.ts";
import { PresenceStore } from "../src/presence.ts";
import { PrincipalAgentsReader } from "../src/principal-agents.ts";
import { PrincipalShares } from "../src/principal-shares.ts";
import { ProcessWindow } from "../src/process-window.ts";
import { RateLimit } from "../src/rate-limit.ts";
import { resetWindow } from "../src/reset.ts";
import { RouteAsserter } from "../src/route-asserter.ts";
import { RouteReleaser } from "../src/routes.ts";
import { readSession } from "../src/sessions.ts";
import { readSnapshot } from "../src/snapshot.ts";
import { readTarget } from "../src/targets.ts";
import { decisionOf, envelopeOf, messageOf, requestOf } from "./envelopes.ts";
import { type Bench, LOGGER } from "./kit.ts";

/** Has every script run, each by its callers. */
export async function runEveryScript(bench: Bench, partitions: number): Promise<void> {
  const pod = await bench.pod({ partitions });
  const { link, window } = pod;
  const presenceStore = new PresenceStore({ link, window, offlineAfterMs: PRESENCE_LIMITS.offlineAfterMs });
  const releaser = new RouteReleaser({ link, window, pod: "pod-a" });
  const counters = new Counters({ link, window });
  const channel = new PodChannel({ calls: link, pod: "pod-a", partitions });
  bench.later(() => channel.stop());
  await channel.start();
  await window.adoptOpenWindow();
  await new ProcessWindow({ link, partitions, deployId: null, logger: LOGGER }).adoptOpenWindow();
  const { epoch } = await pod.register("agent://bob");
  await pod.accept(messageOf("agent://alice", "agent://bob"));
  const request = requestOf("agent://alice", "agent://bob");
  await pod.take(request, { origin: "gateway", claim: { digest: "a", bodyDigest: "b" } });
  const { sessionId } = await pod.request("agent://alice", "agent://bob");
  await pod.take(decisionOf("approve", "agent://bob", "agent://alice", sessionId as string));
  await readSession(link, window, sessionId as string);
  await readTarget(
    link,
    window,
    { agent: "agent://bob", sessionId },
    { offlineAfterMs: PRESENCE_LIMITS.offlineAfterMs, proofFreshnessMs: 1000 },
  );
  await Promise.all([
    presenceStore.read("agent://bob"),
    presenceStore.count(),
    presenceStore.prune(),
    readSnapshot(link, window),
  ]);
  await disconnect(link, window, "agent://bob");
  const agentsReader = new PrincipalAgentsReader({ link, window, offlineAfterMs: PRESENCE_LIMITS.offlineAfterMs });
  await agentsReader.read("key:k", ["agent://bob"]);
  const mark = { agent: "agent://bob", connection: "c1", epoch: epoch as number, isCongested: true };
  await new CongestionMarks({ link, window, pod: "pod-a" }).write([mark]);
  const asserter = new RouteAsserter({ ...pod, pod: "pod-a", offlineAfterMs: 1, agentsPerKey: 1 });
  const bringer = { principal: "key:k", hasNamespace: true } as const;
  const credentials = { records: [{ keyId: "jkt-a", token: "a.b.c" }], expiresAt: Date.now() + 1000 };
  const held = { ...mark, agent: "agent://bob", heardAt: performance.now(), credentials, ...bringer };
  for (const [p, slice] of asserter.slices([held])) await asserter.assert(p, slice);
  await leaseConnections(link, "pod-a", 1);
  await new PrincipalShares({ link, partitions, pod: "pod-a" }).lease("key_envelopes", ["key:k"]);
  const touches = new Touches({ ...pod, pod: "pod-a", agentsPerKey: 1, logger: LOGGER });
  const touch = { envelope: envelopeOf("agent.heartbeat", "agent://bob"), connection: "c1", credential: credentials };
  const [answer] = await touches.write(touches.partitionOf("agent://bob"), [
    { item: { ...touch, ...bringer }, epoch: epoch as number, heardAt: performance.now() },
  ]);
  if (answer?.outcome !== "accepted") throw new Error("the heartbeat was left to acceptance");
  releaser.release([{ agent: "agent://bob", connection: "c1", epoch: epoch as number }]);
  await releaser.flush();
  counters.view("readSession", "visitor-1");
  await counters.flush();
  await addFeedback(link, window, { message: "text" });
  await recordPromotions(link, window, new Map([["control", performance.now()]]));
  await announceGatewayKey(link, { keyId: "gateway-1", publicKey: "A" });
  await readGatewayKeys(link);
  await readCredentials(link, window, "agent://bob");
  await new JourneysCopy(link, window).read();
  await new RateLimit({ link, partitions, name: "send", most: 1 }).use("key-1");
  await resetWindow(link, { partitions, deployId: "deploy-1", force: true });
}
