import { beforeEach, describe, expect, test } from "@jest/globals";
import { until } from "../../test/support/until.ts";
import type { Connector } from "../src/index.ts";
import { shared } from "./fixture.ts";
import { record, WholeStage } from "./kit.ts";

const stage = shared(new WholeStage("alice", "bob"));
let alice: Connector;
let bob: Connector;
let heard: ReturnType<typeof record>;

beforeEach(async () => {
  alice = await stage.online("alice", stage.url);
});

async function bobKeeps(maxInbox: number): Promise<void> {
  bob = await stage.online("bob", stage.url, { maxInbox });
  heard = record(bob);
}

describe("A reader that does not keep up", () => {
  test("loses the oldest, and is told how many", async () => {
    await bobKeeps(3);
    const iterator = bob[Symbol.asyncIterator]();
    const first = iterator.next();
    for (let n = 0; n < 6; n += 1) await alice.send("agent://bob", { n });
    await until("all came in", () => heard.deliveries.length === 6);
    expect(heard.overflows).toEqual([1, 2]);
    const read = [await first, await iterator.next(), await iterator.next(), await iterator.next()];
    expect(read.map(({ value }) => value?.payload.n)).toEqual([0, 3, 4, 5]);
  });

  test("but listens instead loses nothing", async () => {
    await bobKeeps(2);
    for (let n = 0; n < 5; n += 1) await alice.send("agent://bob", { n });
    await until("all came in", () => heard.deliveries.length === 5);
    expect(heard.overflows).toEqual([]);
  });
});
