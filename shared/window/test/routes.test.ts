import { beforeEach, describe, expect, jest, test } from "@jest/globals";
import { CREDENTIAL_LIMITS, PRESENCE_LIMITS } from "relay-protocol/wire/limits.ts";
import { until } from "../../../test/support/until.ts";
import { holderDigestOf } from "../src/limits/principals.ts";
import { type HeldRoute, RouteRestorer } from "../src/presence/held-routes.ts";
import { PresenceStore } from "../src/presence/presence.ts";
import { disconnect, RouteReleaser } from "../src/presence/routes.ts";
import { partitionKeys } from "../src/redis/keys.ts";
import { partitionOf } from "../src/redis/partitions.ts";
import { unavailable } from "../src/redis/redis-calls.ts";
import { REDIS_LIMITS } from "../src/redis/redis-limits.ts";
import { resetWindow } from "../src/window/reset.ts";
import { ALICE, BOB, CAROL, envelopeOf, messageOf, presence } from "./envelopes.ts";
import { AGENTS_PER_KEY, held, type Pod, redisBench, restoreAs, TEAM, whileRedisHangs } from "./kit.ts";

const bench = redisBench();
let pod: Pod;

describe("a release", () => {
  let releaser: RouteReleaser;
  const route = (agent: string, connection: string, epoch: number | null) => ({ agent, connection, epoch });
  const routes = (p = 0) => bench.routes(p);
  const online = async (p = 0) => bench.client.zrange((await bench.keys(p)).online, "0", "-1");

  beforeEach(async () => {
    pod = await bench.pod({ pod: "pod-a" });
    releaser = new RouteReleaser({ ...pod, pod: "pod-a" });
  });

  test("takes the route and the connection of its agents, and leaves when they were seen", async () => {
    await bench.seed(BOB, "pod-a c1 7", 1000);
    await bench.seed(CAROL, "pod-a c1 8", 1000);
    await bench.seed("agent://dave", "pod-a c2 9", 1000);
    releaser.release([route(BOB, "c1", 7), route(CAROL, "c1", 8)]);
    await releaser.flush();
    expect(await routes()).toEqual({ "agent://dave": "pod-a c2 9" });
    expect(await online()).toEqual(["agent://dave"]);
    expect(await bench.client.zscore((await bench.keys()).presence, BOB)).toBe("1000");
  });

  test.each([
    ["epoch", "pod-a c1 8"],
    ["longer epoch", "pod-a c1 71"],
    ["connection", "pod-a c2 7"],
    ["pod", "pod-b c1 7"],
  ])("of an older owner leaves the newer one, known by its %s", async (_part, newer) => {
    await bench.seed(BOB, newer, 1000);
    releaser.release([route(BOB, "c1", 7)]);
    await releaser.flush();
    expect(await routes()).toEqual({ [BOB]: newer });
    expect(await online()).toEqual([BOB]);
  });

  test("for whatever epoch a connection has leaves other connections and pods alone", async () => {
    await bench.seed(BOB, "pod-a c1 7", 1000);
    await bench.seed(CAROL, "pod-a c11 8", 1000);
    await bench.seed("agent://dave", "pod-b c1 9", 1000);
    const agents = [BOB, CAROL, "agent://dave", "agent://nobody"];
    releaser.release(agents.map((agent) => route(agent, "c1", null)));
    await releaser.flush();
    expect(await routes()).toEqual({ [CAROL]: "pod-a c11 8", "agent://dave": "pod-b c1 9" });
    expect(await online()).toEqual([CAROL, "agent://dave"]);
  });

  test("of a connection whose agent registered elsewhere since does not cost the agent its presence", async () => {
    const first = await pod.register(BOB, "c1");
    const second = await pod.register(BOB, "c2");
    releaser.release([route(BOB, "c1", first.epoch as number)]);
    await releaser.flush();
    expect(await routes()).toEqual({ [BOB]: `pod-a c2 ${second.epoch}` });
  });

  test("that is late takes nothing that the same connection got by a register since", async () => {
    const first = await pod.register(BOB, "c1");
    const letGo = holdNextCall();
    releaser.release([route(BOB, "c1", first.epoch)]);
    const again = await pod.register(BOB, "c1");
    letGo();
    await releaser.flush();
    expect(await routes()).toEqual({ [BOB]: `pod-a c1 ${again.epoch}` });
    expect(await online()).toEqual([BOB]);
  });

  test("is known until it is carried out, and takes each epoch that its connection gave up meanwhile", async () => {
    await bench.seed(BOB, "pod-a c1 8", 1000);
    const letGo = holdNextCall();
    releaser.release([route(BOB, "c1", 7)]);
    expect(releaser.unreleased(BOB, "c1")).toEqual(route(BOB, "c1", 7));
    releaser.release([route(BOB, "c1", 8)]);
    releaser.release([route(BOB, "c1", 6)]);
    expect(releaser.unreleased(BOB, "c1")).toEqual(route(BOB, "c1", null));
    letGo();
    await releaser.flush();
    expect([releaser.unreleased(BOB, "c1"), await routes()]).toEqual([undefined, {}]);
  });

  test("finds each agent in its partition, and takes as many as there are", async () => {
    await bench.client.flushall();
    const many = new RouteReleaser({ ...(await bench.pod({ partitions: 4 })), pod: "pod-a" });
    const agents = Array.from({ length: 1200 }, (_, n) => `agent://a${n}`);
    for (const agent of agents) await bench.seed(agent, "pod-a c1 7", 1000, partitionOf(agent, 4));
    many.release(agents.map((agent) => route(agent, "c1", 7)));
    await many.flush();
    for (const p of [0, 1, 2, 3]) expect([await routes(p), await online(p)]).toEqual([{}, []]);
  });

  test("waits for none of another partition, whose releases are kept", async () => {
    await bench.client.flushall();
    const parted = await bench.pod({ partitions: 2 });
    const many = new RouteReleaser({ ...parted, pod: "pod-a" });
    const [away, here] = [0, 1].map((p) => agentOf(p, 2)) as [string, string];
    for (const [p, agent] of [away, here].entries()) await bench.seed(agent, "pod-a c1 7", 1000, p);
    const call = Promise.withResolvers<never>();
    jest.spyOn(parted.link, "run").mockReturnValueOnce(call.promise);
    many.release([route(away, "c1", 7)]);
    many.release([route(here, "c1", 7)]);
    await until("the route is gone", async () => Object.keys(await routes(1)).length === 0);
    call.reject(unavailable());
    await many.flush();
    expect(await routes(0)).toEqual({ [away]: "pod-a c1 7" });
    await many.flush();
    expect(await routes(0)).toEqual({});
  });

  test("that comes just as another ends is made as well", async () => {
    const run = pod.link.run.bind(pod.link);
    for (let ticks = 0; ticks < 12; ticks += 1) {
      await bench.seed(BOB, "pod-a c1 7", 1000);
      await bench.seed("agent://late", "pod-a c1 8", 1000);
      jest.spyOn(pod.link, "run").mockImplementationOnce(async (...call) => {
        const reply = await run(...call);
        void after(ticks).then(() => releaser.release([route("agent://late", "c1", 8)]));
        return reply;
      });
      releaser.release([route(BOB, "c1", 7)]);
      await until("both routes are gone", async () => Object.keys(await routes()).length === 0);
    }
  });

  test("that met an outage is made when Redis is back, without another call", async () => {
    await bench.seed(BOB, "pod-a c1 7", 1000);
    jest.spyOn(pod.link, "run").mockRejectedValueOnce(unavailable());
    releaser.release([route(BOB, "c1", 7)]);
    await releaser.flush();
    expect(await routes()).toEqual({ [BOB]: "pod-a c1 7" });
    pod.link.reconnect(new Error("given up by the test"));
    await until("the route is gone", async () => Object.keys(await routes()).length === 0);
  });

  /** Holds the next call that the pod's link is given. @returns lets it go. */
  function holdNextCall(): () => void {
    const run = pod.link.run.bind(pod.link);
    const isDue = Promise.withResolvers<void>();
    jest.spyOn(pod.link, "run").mockImplementationOnce(async (...call) => {
      await isDue.promise;
      return await run(...call);
    });
    return isDue.resolve;
  }

  function agentOf(p: number, partitions: number): string {
    for (let n = 0; ; n += 1) if (partitionOf(`agent://a${n}`, partitions) === p) return `agent://a${n}`;
  }

  /** Resolves so many turns of the microtask queue later. */
  async function after(ticks: number): Promise<void> {
    for (let n = 0; n < ticks; n += 1) await null;
  }
});

describe("what a pod restoring:", () => {
  const { offlineAfterMs, staleAfterMs, stabilityHoldMs } = PRESENCE_LIMITS;
  const HOUR = 3_600_000;
  let store: PresenceStore;

  beforeEach(async () => {
    pod = await bench.pod({ agentsPerKey: AGENTS_PER_KEY });
    store = new PresenceStore({ ...pod, offlineAfterMs });
    await pod.window.known();
  });

  const restore = (routes: readonly HeldRoute[], name = "pod-a", of = pod) => restoreAs(name, of, routes);

  describe("restoring", () => {
    test("brings an agent back that Redis lost, under its epoch: envelopes reach it", async () => {
      const ear = await bench.ear("pod-a");
      expect(await restore([held()])).toEqual([null]);
      expect(await bench.routes()).toEqual({ [BOB]: "pod-a c1 7" });
      expect(await pod.accept(messageOf(ALICE, BOB))).toMatchObject({ delivery: "online" });
      expect(await ear.lines()).toMatchObject([expect.stringMatching(/^deliver c1 7 agent:\/\/bob - /)]);
      expect((await store.count()).ok).toBe(1);
    });

    test("changes nothing where the connection has the agent, under the same epoch or a newer one", async () => {
      const { epoch } = await pod.register(BOB);
      const before = await bench.client.hgetall((await bench.keys()).route);
      expect(await restore([held(), held({ epoch: epoch as number })])).toEqual([null, null]);
      expect(await bench.client.hgetall((await bench.keys()).route)).toEqual(before);
    });

    test("gives the connection its epoch back where a replica took over that had an older one: no restoring of between takes the agent", async () => {
      const ear = await bench.ear("pod-a");
      await bench.seed(BOB, "pod-a c1 5", Date.now());
      expect(await restore([held({ epoch: 7 })])).toEqual([null]);
      expect(await bench.routes()).toEqual({ [BOB]: "pod-a c1 7" });
      expect(await restore([held({ epoch: 6, connection: "c9" })], "pod-b")).toEqual([7]);
      expect(await ear.lines()).toEqual([]);
    });

    test("brings back online, under its epoch, who was not heard for a moment and kept its route", async () => {
      await bench.seed(BOB, "pod-a c1 7", Date.now());
      await bench.client.zrem((await bench.keys()).online, BOB);
      expect((await store.read(BOB)).status).toBe("stale");
      expect(await restore([held({ epoch: 6 })])).toEqual([null]);
      expect(await bench.routes()).toEqual({ [BOB]: "pod-a c1 7" });
      expect(await store.read(BOB)).toMatchObject({ status: "online" });
      expect((await store.count()).ok).toBe(1);
    });

    test("of an older epoch takes nothing, and tells the newer one", async () => {
      await bench.seed(BOB, "pod-b c9 8", Date.now());
      expect(await restore([held()])).toEqual([8]);
      expect(await bench.routes()).toEqual({ [BOB]: "pod-b c9 8" });
    });

    test("of a newer epoch takes the agent, and its older owner is told", async () => {
      const ear = await bench.ear("pod-b");
      await bench.seed(BOB, "pod-b c9 6", Date.now());
      expect(await restore([held()])).toEqual([null]);
      expect(await bench.routes()).toEqual({ [BOB]: "pod-a c1 7" });
      expect(await ear.lines()).toEqual([`superseded c9 7 ${BOB}`]);
    });

    test("whichever pod comes first, the agent that moved is where it moved to", async () => {
      const here = held({ epoch: 7 });
      const there = held({ epoch: 8, connection: "c9" });
      for (const order of [
        ["pod-a", "pod-b"],
        ["pod-b", "pod-a"],
      ]) {
        await bench.client.del((await bench.keys()).route);
        for (const name of order) await restore([name === "pod-a" ? here : there], name);
        expect(await bench.routes()).toEqual({ [BOB]: "pod-b c9 8" });
      }
    });

    test("is followed by epochs that are newer, though the clock that gave them is gone, and that of Redis was set back", async () => {
      const ahead = 2 * Date.now() * 1000;
      await restore([held({ epoch: ahead })]);
      const { epoch } = await pod.register(BOB, "c2");
      expect(epoch).toBeGreaterThan(ahead);
    });

    test("says how old it is: the agent was last heard when the pod heard it, and its hold begins anew", async () => {
      const ageMs = staleAfterMs / 2;
      const before = Date.now();
      await restore([held({ heardAt: performance.now() - ageMs })]);
      const { status, lastSeen, stableInMs } = await store.read(BOB);
      expect(status).toBe("online");
      expect(lastSeen).toBeLessThanOrEqual(Date.now() - ageMs);
      expect(lastSeen).toBeGreaterThan(before - staleAfterMs);
      expect(stableInMs).toBeGreaterThan(0);
      expect(stableInMs).toBeLessThanOrEqual(stabilityHoldMs);
    });

    test("does not bring an agent online that is not heard of any more", async () => {
      await restore([held({ heardAt: performance.now() - staleAfterMs - 1 })]);
      expect((await store.read(BOB)).status).toBe("stale");
      expect((await store.count()).ok).toBe(0);
      expect(await pod.accept(messageOf(ALICE, BOB))).toMatchObject({ delivery: "stale" });
    });

    test("does not make an agent be seen later, or earlier, than it was", async () => {
      const seenAt = Date.now() - 1000;
      await bench.seed(BOB, "pod-b c9 6", seenAt);
      await restore([held({ heardAt: performance.now() - staleAfterMs })]);
      expect(await bench.client.zscore((await bench.keys()).presence, BOB)).toBe(String(seenAt));
      await restore([held({ agent: ALICE, heardAt: performance.now() + 60_000 })]);
      expect((await store.read(ALICE)).lastSeen).toBeLessThanOrEqual(Date.now());
    });

    test("keeps the mark of a congested connection", async () => {
      await restore([held({ isCongested: true })]);
      expect(await pod.accept(messageOf(ALICE, BOB))).toMatchObject({ delivery: "stale" });
    });

    test("counts the agents of a namespace as registers do, and enters none beyond what there may be", async () => {
      const agents = ["agent://team.a", "agent://team.b", "agent://team.c"];
      await restore(agents.map((agent, n) => held({ agent, ...TEAM, epoch: n + 1 })));
      expect(Object.keys(await bench.routes())).toEqual(agents.slice(0, AGENTS_PER_KEY));
      expect(await bench.client.zcard((await bench.keys()).agents(holderDigestOf(TEAM.principal)))).toBe(
        AGENTS_PER_KEY,
      );
      expect(await bench.client.pttl((await bench.keys()).agents(holderDigestOf(TEAM.principal)))).toBeGreaterThan(0);
    });

    test("counts the agents of a namespace, also where there may be more, and none as seen earlier than it was", async () => {
      const agentsKey = (await bench.keys()).agents(holderDigestOf(TEAM.principal));
      const seenAt = Date.now() + 60_000;
      await bench.client.zadd(agentsKey, seenAt, "agent://team.a");
      await restore([held({ agent: "agent://team.a", ...TEAM })]);
      expect(await bench.client.zscore(agentsKey, "agent://team.a")).toBe(String(seenAt));
      await bench.client.del(agentsKey);
      await bench.client.hdel((await bench.keys()).route, "agent://team.a");
      await restore([held({ agent: "agent://team.a", ...TEAM })]);
      expect(await bench.client.zcard(agentsKey)).toBe(1);
      expect(await bench.client.pttl(agentsKey)).toBeGreaterThan(0);
    });

    test("enters no agent that Redis does not know while it is short of memory", async () => {
      await pod.register(ALICE);
      await bench.client.hdel((await bench.keys()).route, ALICE);
      pod.link.memory.update("used_memory:9\r\nmaxmemory:10\r\n");
      await restore([held(), held({ agent: ALICE })]);
      expect(Object.keys(await bench.routes())).toEqual([ALICE]);
    });

    test("does nothing in another window than the one that its pod is in", async () => {
      await resetWindow(pod.link, { partitions: 1, deployId: "next", force: true });
      await expect(restore([held()])).rejects.toMatchObject({ code: "unavailable" });
      expect(await bench.routes()).toEqual({});
    });

    test("does nothing when Redis comes to it after its pod was told that it did not", async () => {
      const { id } = pod.window.current;
      const { presence, online, route, clock } = await bench.keys();
      const names = [partitionKeys.window(0), presence, online, route, clock];
      const owner = ["pod-a", BOB, "c1", 7, Date.now(), ...Array<string>(6).fill("")];
      const args = [Date.now() - 1, id, partitionKeys.podChannelPrefix(0), 1, 1, 0, ...owner];
      expect(await pod.link.run("restore_routes", names, args)).toMatchObject(["late", expect.any(String)]);
      expect(await bench.routes()).toEqual({});
    });
  });

  describe("what waits for an agent", () => {
    test("that was restored is told with its next heartbeat, once", async () => {
      const { sessionId } = await pod.request(ALICE, BOB);
      await restore([held()]);
      expect(await pod.heartbeat(BOB)).toMatchObject({ epoch: 7, pending: [{ sessionId }] });
      expect(await pod.heartbeat(BOB)).toMatchObject({ epoch: 7, pending: [] });
    });
  });

  test("a release takes back what was restored", async () => {
    await restore([held()]);
    const releaser = new RouteReleaser({ ...pod, pod: "pod-a" });
    releaser.release([held()]);
    await releaser.flush();
    expect(await bench.routes()).toEqual({});
  });

  test("two hundred routes go with one call, which stays within a MiB with the longest credentials there are", async () => {
    const { link, window } = pod;
    const restorer = new RouteRestorer({ link, window, pod: "pod-a", offlineAfterMs });
    const token = "x".repeat(CREDENTIAL_LIMITS.maxCharacters);
    const records = ["a", "b"].map((letter) => ({ keyId: `jkt-${letter.repeat(43)}`, token }));
    const credentials = { records, expiresAt: Date.now() + HOUR };
    const name = `agent://${"b".repeat(60)}`;
    const routes = Array.from({ length: 201 }, (_, n) => held({ agent: name + n, credentials }));
    const slices = restorer.slices(routes);
    expect(slices.map(([, { length }]) => length)).toEqual([200, 1]);
    const calls = jest.spyOn(link, "run");
    for (const [p, slice] of slices) await restorer.restore(p, slice);
    const sizes = calls.mock.calls.map(([, keys, args = []]) => [...keys, ...args].join(" ").length);
    expect(Math.max(...sizes)).toBeLessThan(REDIS_LIMITS.acceptanceBatchCharacters);
    expect(Object.keys(await bench.routes())).toHaveLength(201);
  });

  test("a register is heard when it comes, and a repeat of it is no sign of life", async () => {
    const register = envelopeOf("agent.register", BOB);
    const sentAt = performance.now();
    const { epoch, heardAt } = presence(await pod.accept(register));
    expect(heardAt).toBeGreaterThanOrEqual(sentAt);
    expect(heardAt).toBeLessThanOrEqual(performance.now());
    await bench.seed(BOB, `pod-a c1 ${epoch}`, Date.now() - staleAfterMs);
    const repeat = presence(await pod.accept(register));
    expect(repeat).toMatchObject({ outcome: "duplicate", epoch });
    expect(repeat.heardAt).toBeLessThanOrEqual(performance.now() - staleAfterMs);
  });
});

describe("To disconnect an agent", () => {
  const PARTITIONS = 3;
  let epoch: number;

  beforeEach(async () => {
    pod = await bench.pod({ partitions: PARTITIONS });
    epoch = (await pod.register(BOB)).epoch as number;
  });

  const earOf = (name = "pod-a") => bench.ear(name, partitionOf(BOB, PARTITIONS));
  const tell = (agent = BOB) => disconnect(pod.link, pod.window, agent);

  test("tells its pod alone, by connection and epoch, and writes nothing itself", async () => {
    const [ear, other] = [await earOf(), await earOf("pod-b")];
    const before = await bench.routes(partitionOf(BOB, PARTITIONS));
    expect(await tell()).toBe(true);
    expect([await ear.lines(), await other.lines()]).toEqual([[`disconnect c1 ${epoch} ${BOB}`], []]);
    expect(await bench.routes(partitionOf(BOB, PARTITIONS))).toEqual(before);
  });

  test.each([
    ["no connection has", "agent://eve"],
    ["is of a pod that nobody hears", BOB],
  ])("says so where it %s", async (_, agent) => {
    expect(await tell(agent)).toBe(false);
  });

  test("follows a window that was replaced", async () => {
    const ear = await earOf();
    await resetWindow(pod.link, { partitions: PARTITIONS, deployId: "deploy-1", force: true });
    expect(await tell()).toBe(false);
    expect(await ear.lines()).toEqual([]);
  });

  test("does nothing that Redis comes to after it was told `unavailable`", async () => {
    const ear = await earOf();
    const told = await whileRedisHangs(bench, pod, () => tell().catch(({ code }) => code));
    expect([told, await ear.lines()]).toEqual(["unavailable", []]);
  });
});
