import { afterAll, afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { partitionOf } from "../src/redis/partitions.ts";
import { RouteReleaser } from "../src/routes.ts";
import { unavailable } from "../src/unavailable.ts";
import { Bench, type Pod } from "./kit.ts";

const bench = new Bench();
let pod: Pod;
let releaser: RouteReleaser;

const route = (agent: string, connection: string, epoch: number | null) => ({ agent, connection, epoch });
const routes = (p = 0) => bench.routes(p);
const online = async (p = 0) => bench.client.zrange((await bench.keys(p)).online, "0", "-1");

beforeEach(async () => {
  await bench.open();
  pod = await bench.pod({ pod: "pod-a" });
  releaser = new RouteReleaser({ ...pod, pod: "pod-a" });
});
afterEach(() => bench.clear());
afterAll(() => bench.redis.stop());

describe("a release", () => {
  test("takes the route and the connection of its agents, and leaves when they were seen", async () => {
    await bench.seed("agent://bob", "pod-a c1 7", 1000);
    await bench.seed("agent://carol", "pod-a c1 8", 1000);
    await bench.seed("agent://dave", "pod-a c2 9", 1000);
    releaser.release([route("agent://bob", "c1", 7), route("agent://carol", "c1", 8)]);
    await releaser.flush();
    expect(await routes()).toEqual({ "agent://dave": "pod-a c2 9" });
    expect(await online()).toEqual(["agent://dave"]);
    expect(await bench.client.zscore((await bench.keys()).presence, "agent://bob")).toBe("1000");
  });

  test.each([
    ["epoch", "pod-a c1 8"],
    ["longer epoch", "pod-a c1 71"],
    ["connection", "pod-a c2 7"],
    ["pod", "pod-b c1 7"],
  ])("of an older owner leaves the newer one, known by its %s", async (_part, newer) => {
    await bench.seed("agent://bob", newer, 1000);
    releaser.release([route("agent://bob", "c1", 7)]);
    await releaser.flush();
    expect(await routes()).toEqual({ "agent://bob": newer });
    expect(await online()).toEqual(["agent://bob"]);
  });

  test("for whatever epoch a connection has leaves other connections and pods alone", async () => {
    await bench.seed("agent://bob", "pod-a c1 7", 1000);
    await bench.seed("agent://carol", "pod-a c11 8", 1000);
    await bench.seed("agent://dave", "pod-b c1 9", 1000);
    const agents = ["agent://bob", "agent://carol", "agent://dave", "agent://nobody"];
    releaser.release(agents.map((agent) => route(agent, "c1", null)));
    await releaser.flush();
    expect(await routes()).toEqual({ "agent://carol": "pod-a c11 8", "agent://dave": "pod-b c1 9" });
    expect(await online()).toEqual(["agent://carol", "agent://dave"]);
  });

  test("of a connection whose agent registered elsewhere since does not cost the agent its presence", async () => {
    const first = await pod.register("agent://bob", "c1");
    const second = await pod.register("agent://bob", "c2");
    releaser.release([route("agent://bob", "c1", first.epoch as number)]);
    await releaser.flush();
    expect(await routes()).toEqual({ "agent://bob": `pod-a c2 ${second.epoch}` });
  });

  test("that is late takes nothing that the same connection got by a register since", async () => {
    const first = await pod.register("agent://bob", "c1");
    const letGo = holdNextCall();
    releaser.release([route("agent://bob", "c1", first.epoch)]);
    const again = await pod.register("agent://bob", "c1");
    letGo();
    await releaser.flush();
    expect(await routes()).toEqual({ "agent://bob": `pod-a c1 ${again.epoch}` });
    expect(await online()).toEqual(["agent://bob"]);
  });

  test("is known until it is carried out, and takes each epoch that its connection gave up meanwhile", async () => {
    await bench.seed("agent://bob", "pod-a c1 8", 1000);
    const letGo = holdNextCall();
    releaser.release([route("agent://bob", "c1", 7)]);
    expect(releaser.unreleased("agent://bob", "c1")).toEqual(route("agent://bob", "c1", 7));
    releaser.release([route("agent://bob", "c1", 8)]);
    releaser.release([route("agent://bob", "c1", 6)]);
    expect(releaser.unreleased("agent://bob", "c1")).toEqual(route("agent://bob", "c1", null));
    letGo();
    await releaser.flush();
    expect([releaser.unreleased("agent://bob", "c1"), await routes()]).toEqual([undefined, {}]);
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
      await bench.seed("agent://bob", "pod-a c1 7", 1000);
      await bench.seed("agent://late", "pod-a c1 8", 1000);
      jest.spyOn(pod.link, "run").mockImplementationOnce(async (...call) => {
        const reply = await run(...call);
        void after(ticks).then(() => releaser.release([route("agent://late", "c1", 8)]));
        return reply;
      });
      releaser.release([route("agent://bob", "c1", 7)]);
      await until("both routes are gone", async () => Object.keys(await routes()).length === 0);
    }
  });

  test("that met an outage is made when Redis is back, without another call", async () => {
    await bench.seed("agent://bob", "pod-a c1 7", 1000);
    jest.spyOn(pod.link, "run").mockRejectedValueOnce(unavailable());
    releaser.release([route("agent://bob", "c1", 7)]);
    await releaser.flush();
    expect(await routes()).toEqual({ "agent://bob": "pod-a c1 7" });
    pod.link.reconnect(new Error("given up by the test"));
    await until("the route is gone", async () => Object.keys(await routes()).length === 0);
  });
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
