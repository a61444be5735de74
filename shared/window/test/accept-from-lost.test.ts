import { describe, expect, test } from "@jest/globals";
import { acceptFromOf } from "../src/records/accept-from.ts";
import { ACCEPTED, ALICE, bench, MALLORY, pod, REFUSED, registers, sends } from "./accepting.ts";
import { envelopeOf, presence } from "./envelopes.ts";
import { assertAs, BOB, held, type Incoming } from "./kit.ts";

/** Where Redis lost whom an agent accepts envelopes from, or has what was said before. */

describe("a heartbeat", () => {
  const heartbeat = async (incoming: Incoming) =>
    presence(await pod.accept(envelopeOf("agent.heartbeat", BOB), incoming));

  test("that takes the agent is told what its connection does not know", async () => {
    await registers([ALICE]);
    await bench.client.hdel((await bench.keys()).route, BOB);
    expect((await heartbeat({ connection: "c2" })).acceptFrom).toBe(acceptFromOf({ accept_from: [ALICE] }));
    expect((await heartbeat({ connection: "c2" })).acceptFrom).toBeUndefined();
    await registers(undefined, { connection: "c2" });
    await bench.client.hdel((await bench.keys()).route, BOB);
    expect((await heartbeat({ connection: "c3" })).acceptFrom).toBe(acceptFromOf({}));
  });

  test("that takes the agent where Redis lost it brings what its connection knows", async () => {
    await heartbeat({ acceptFrom: acceptFromOf({ accept_from: [ALICE] }) });
    expect(await sends(MALLORY)).toEqual(REFUSED);
    await heartbeat({ acceptFrom: acceptFromOf({ accept_from: [MALLORY] }) });
    expect(await sends(MALLORY)).toEqual(REFUSED);
  });
});

describe("an assert", () => {
  const acceptFrom = acceptFromOf({ accept_from: [ALICE] });

  test("has it in force again in a window that knows nothing of the agent", async () => {
    await pod.window.known();
    await assertAs("pod-a", pod, [held({ acceptFrom })]);
    expect(await sends(MALLORY)).toEqual(REFUSED);
    expect(await sends(ALICE)).toMatchObject(ACCEPTED);
  });

  test("leaves what Redis has of the same register or a newer one", async () => {
    await bench.ear("pod-a");
    const { epoch } = presence(await registers([ALICE]));
    const { epoch: newer } = presence(await registers([MALLORY]));
    await assertAs("pod-a", pod, [held({ acceptFrom, epoch: epoch as number })]);
    await assertAs("pod-a", pod, [held({ acceptFrom, epoch: newer as number })]);
    expect(await sends(MALLORY)).toMatchObject(ACCEPTED);
    await registers();
    await assertAs("pod-a", pod, [held({ acceptFrom, epoch: newer as number })]);
    expect(await sends(MALLORY)).toMatchObject(ACCEPTED);
    await bench.client.zrem((await bench.keys()).online, BOB);
    await assertAs("pod-a", pod, [held({ acceptFrom, epoch: newer as number })]);
    expect(await sends(MALLORY)).toMatchObject(ACCEPTED);
  });

  test.each([
    ["a list", acceptFrom, REFUSED],
    ["everyone", acceptFromOf({}), ACCEPTED],
  ])(
    "says %s anew where a promoted replica has what an older register of the same connection said",
    async (_, says, answer) => {
      const { epoch } = presence(await registers([ALICE, MALLORY]));
      await assertAs("pod-a", pod, [held({ acceptFrom: says, epoch: (epoch as number) + 1 })]);
      expect(await sends("agent://carol")).toMatchObject(answer);
    },
  );

  test("says it anew where the agent was taken by a heartbeat since, before the replica heard of the register", async () => {
    const { acceptFrom: key, route } = await bench.keys();
    await registers([ALICE]);
    const older = await bench.client.hget(key, BOB);
    await registers([MALLORY]);
    await bench.client.hset(key, BOB, older as string);
    await bench.client.hdel(route, BOB);
    const { epoch } = presence(await pod.heartbeat(BOB));
    await assertAs("pod-a", pod, [
      held({ acceptFrom: acceptFromOf({ accept_from: [MALLORY] }), epoch: epoch as number }),
    ]);
    expect(await sends(MALLORY)).toMatchObject(ACCEPTED);
    expect(await sends(ALICE)).toEqual(REFUSED);
  });

  test("of a connection that does not know leaves what Redis has, whoever gives way", async () => {
    await bench.ear("pod-a");
    const { epoch } = presence(await registers([ALICE]));
    await assertAs("pod-b", pod, [held({ connection: "c5", epoch: (epoch as number) + 1 })]);
    expect(await sends(MALLORY)).toEqual(REFUSED);
  });

  test("goes over what an owner said that gives way", async () => {
    await bench.ear("pod-a");
    await bench.ear("pod-b");
    const epoch = presence(await registers([MALLORY], { connection: "c1" })).epoch as number;
    await assertAs("pod-b", pod, [held({ acceptFrom, connection: "c5", epoch: epoch + 1 })]);
    expect(await sends(MALLORY)).toEqual(REFUSED);
    await assertAs("pod-c", pod, [held({ acceptFrom: acceptFromOf({}), connection: "c6", epoch: epoch + 2 })]);
    expect(await sends(MALLORY)).toMatchObject(ACCEPTED);
  });
});
