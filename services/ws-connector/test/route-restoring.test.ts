import { beforeEach, describe, expect, test } from "@jest/globals";
import type { KeyStore } from "relay-runtime/key-store.ts";
import type { HeldRoute, RouteRestorer } from "relay-window/presence/held-routes.ts";
import { unavailable } from "relay-window/redis/redis-calls.ts";
import { until } from "../../../test/support/until.ts";
import { Authority } from "../src/agents/authority.ts";
import { RouteRestoring } from "../src/agents/route-restoring.ts";
import { AGENT, KEY_ID, online, RegistrarHarness } from "./registrar-harness.ts";

let calls: {
  readonly partition: number;
  readonly routes: readonly HeldRoute[];
  readonly answer: PromiseWithResolvers<(number | null)[]>;
}[];
let relay: RegistrarHarness;
/** The partitions in which the agent is, one call for each. */
let partitions: readonly number[];
let restoring: RouteRestoring;
/** Whether the keys file allows the agent. */
let mayAct: boolean;

beforeEach(() => {
  calls = [];
  mayAct = true;
  partitions = [0];
  relay = new RegistrarHarness();
  const restorer = {
    partitions: 12,
    slices: (items: readonly object[]) => (items.length === 0 ? [] : partitions.map((p) => [p, items])),
    restore: (partition: number, routes: readonly HeldRoute[]) => {
      const answer = Promise.withResolvers<(number | null)[]>();
      calls.push({ partition, routes, answer });
      return answer.promise;
    },
  } as unknown as RouteRestorer;
  const keys = { ring: { mayAct: () => mayAct, hasNamespace: () => true } } as unknown as KeyStore;
  const authority = new Authority({ keys, hosts: new Set() });
  const { registrar, releaser, connection } = relay;
  restoring = new RouteRestoring({ redis: { restorer, releaser }, connections: [connection], registrar, authority });
});

/** The agent comes online under this epoch. */
function own(epoch: number): void {
  relay.request();
  relay.answer(online(epoch, { heardAt: 40 }));
}

/** All is restored, and Redis says of each call what there is to say of its routes. */
async function assertAll(...newer: readonly (number | null)[]): Promise<void> {
  const done = restoring.all();
  calls.at(-1)?.answer.resolve([...newer]);
  await done;
}

test("What a connection owns is restored as it is: whose it is, since when, when it was last heard, and who brought it", async () => {
  own(7);
  await assertAll(null);
  const route = { agent: AGENT, connection: "con_1", epoch: 7, heardAt: 40, isCongested: false };
  expect(calls.map(({ routes }) => routes)).toMatchObject([
    [{ ...route, principal: `key:${KEY_ID}`, hasNamespace: true }],
  ]);
  expect(relay.released).toEqual([]);
});

test("What its connection holds of credentials when the call is sent goes with it, also when it is sent again", async () => {
  const of = (keyId: string) => ({ records: [{ keyId, token: "a.b.c" }], expiresAt: 1 });
  let held = of("jkt-a");
  Object.assign(relay.connection, { credentials: { holding: () => held } });
  own(7);
  const failed = restoring.all();
  calls[0]?.answer.reject(unavailable());
  await failed;
  held = of("jkt-b");
  const again = restoring.flush();
  calls[1]?.answer.resolve([null]);
  await again;
  expect(calls.map(({ routes }) => routes[0]?.credentials)).toEqual([of("jkt-a"), of("jkt-b")]);
});

test("A partition that Redis does not answer for holds up no other, and is restored again alone", async () => {
  own(7);
  partitions = [3, 3, 5];
  const failed = restoring.all();
  calls[0]?.answer.reject(unavailable());
  await until("the next partition is restored", () => calls.length === 2);
  calls[1]?.answer.resolve([null]);
  await failed;
  expect(calls.map(({ partition }) => partition)).toEqual([3, 5]);
  const again = restoring.flush();
  for (const n of [2, 3]) {
    await until("a call", () => calls.length > n);
    calls[n]?.answer.resolve([null]);
  }
  await again;
  expect(calls.map(({ partition }) => partition)).toEqual([3, 5, 3, 3]);
});

test("What is due of one partition is restored there alone", async () => {
  own(7);
  partitions = [3, 5, 7];
  const done = restoring.ofPartitions([5]);
  calls[0]?.answer.resolve([null]);
  await done;
  expect(calls.map(({ partition }) => partition)).toEqual([5]);
});

test("What is owned stays so while another register of it is under way", async () => {
  own(7);
  relay.request();
  await assertAll(null);
  expect(calls[0]?.routes).toMatchObject([{ epoch: 7 }]);
});

const never: readonly (readonly [string, () => void])[] = [
  ["is only asked for", () => relay.request()],
  [
    "may be owned, but was never said to be",
    () => {
      relay.request();
      relay.answer({ outcome: "unavailable" });
    },
  ],
  [
    "has a connection that closes",
    () => {
      own(7);
      Object.assign(relay.connection, { isClosing: true });
    },
  ],
  [
    "has a connection that its pod lets go",
    () => {
      own(7);
      relay.connection.pause("draining");
    },
  ],
  [
    "is no longer allowed by its key",
    () => {
      own(7);
      mayAct = false;
    },
  ],
  [
    "could not be delivered to, the channel being down",
    () => {
      own(7);
      relay.channel.isReady = false;
    },
  ],
];

test.each(never)("Not restored is what %s", async (_, arrange) => {
  arrange();
  await restoring.all();
  expect(calls).toEqual([]);
});

test("Who lost the agent to a newer epoch is told as by a takeover, after what was promised to it has come in", async () => {
  own(7);
  await assertAll(9);
  expect(relay.closedWith).toBeUndefined();
  await relay.catchUp();
  expect(relay.sent.at(-1)).toMatchObject({ notice: "superseded", agent_id: AGENT, epoch: 9 });
  expect(relay.closedWith).toBe(4409);
});

const answers: readonly (readonly [string, (call: PromiseWithResolvers<(number | null)[]>) => void])[] = [
  ["", ({ resolve }) => resolve([null])],
  [", also when its answer was lost", ({ reject }) => reject(unavailable())],
];
describe.each(answers)("What goes while its restore is under way is released after it%s:", (_, give) => {
  const gone: readonly (readonly [string, () => void])[] = [
    ["an agent that was released", () => relay.registrar.releaseAll(relay.connection)],
    ["one whose connection closes", () => void Object.assign(relay.connection, { isClosing: true })],
    ["one that its pod lets go", () => relay.connection.pause("draining")],
  ];
  test.each(gone)("%s", async (_, go) => {
    own(7);
    const done = restoring.all();
    go();
    relay.released.length = 0;
    give(calls[0]?.answer as PromiseWithResolvers<(number | null)[]>);
    await done;
    expect(relay.released).toMatchObject([{ agent: AGENT, connection: "con_1", epoch: 7 }]);
  });

  test("but nothing that stays, though the channel is down by then", async () => {
    own(7);
    const done = restoring.all();
    relay.channel.isReady = false;
    give(calls[0]?.answer as PromiseWithResolvers<(number | null)[]>);
    await done;
    expect(relay.released).toEqual([]);
  });
});

test.each(answers)(
  "What restoring says of congestion is said again after it where it is not true any more%s",
  async (_, give) => {
    let said = 0;
    own(7);
    Object.assign(relay.connection, { isCongested: true, congestionChanged: () => (said += 1) });
    const done = restoring.all();
    expect(calls[0]?.routes).toMatchObject([{ isCongested: true }]);
    Object.assign(relay.connection, { isCongested: false });
    give(calls[0]?.answer as PromiseWithResolvers<(number | null)[]>);
    await done;
    expect(said).toBe(1);
  },
);

test("What Redis did not take is restored with the next flush, as it is by then; without anything due a flush does nothing", async () => {
  own(7);
  const failed = restoring.all();
  calls[0]?.answer.reject(unavailable());
  await failed;
  own(8);
  const again = restoring.flush();
  calls[1]?.answer.resolve([null]);
  await again;
  await restoring.flush();
  expect(calls.map(({ routes }) => routes[0]?.epoch)).toEqual([7, 8]);
});

test("What becomes due while a call is under way is restored after it", async () => {
  own(7);
  const first = restoring.all();
  const second = restoring.all();
  calls[0]?.answer.resolve([null]);
  await new Promise(setImmediate);
  calls[1]?.answer.resolve([null]);
  await Promise.all([first, second]);
  expect(calls).toHaveLength(2);
});
