import { afterEach, expect, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { SharedConnection } from "../../src/cli/sharing/shared-connection.ts";
import { Connector, type Delivery } from "../../src/index.ts";
import { shared } from "../fixture.ts";
import { ControlSockets } from "./control-kit.ts";
import { CommandLine } from "./kit.ts";
import type { Running } from "./shell.ts";

const line = shared(new CommandLine("alice", "bob-hmac"));
const sockets = new ControlSockets(line);
const ALICE = "agent://alice";
const followers: SharedConnection[] = [];
afterEach(async () => {
  sockets.clear();
  for (const follower of followers.splice(0)) await follower.close();
});

/** Messages are promised to alice's process while it stands still; then another one takes her over, and it reads all of that at once. */
async function takeOverBehind(listener: Running, count: number): Promise<void> {
  const bob = await line.stage.online("bob-hmac", line.url);
  listener.child.kill("SIGSTOP");
  for (let n = 0; n < count; n += 1) {
    expect(await bob.send(ALICE, { n })).toMatchObject({ delivery: { canDeliverRealtime: true } });
  }
  await line.stage.online("alice", line.url, { takeOver: true });
  listener.child.kill("SIGCONT");
}

const numbersIn = (listener: Running) => listener.lines.map(({ envelope }) => envelope.payload.n);

test("relay listen prints what was promised to it before it ends since another connection took its agent over", async () => {
  const listener = await line.listen("alice");
  await takeOverBehind(listener, 3);
  expect(await listener.end()).toBe(6);
  expect(numbersIn(listener)).toEqual([0, 1, 2]);
  expect(listener.reports.at(-1)).toMatchObject({ event: "error", code: "superseded" });
});

test("relay listen --exec runs its program for each of them, too", async () => {
  const listener = await line.listen("alice", "--exec", "sed 's/.*/ran/' >&2");
  await takeOverBehind(listener, 2);
  expect(await listener.end()).toBe(6);
  expect(numbersIn(listener)).toEqual([0, 1]);
  expect(listener.stderr.match(/^ran$/gm)).toHaveLength(2);
});

test("a process that shares the connection of a relay listen gets them, too", async () => {
  const listener = await line.listen("alice");
  const place = sockets.place();
  const open = (takeOver: boolean) => new Connector({ url: line.url, ...place.signing, takeOver });
  const follower = new SharedConnection({ place, takeOver: false, mayFollow: true, shares: () => {}, open });
  followers.push(follower);
  const deliveries: Delivery[] = [];
  follower.on("delivery", (delivery) => deliveries.push(delivery));
  await follower.start();
  await until("it shares the connection", () => follower.isShared && follower.state.status === "online");
  await takeOverBehind(listener, 2);
  await until("it got them", () => deliveries.length === 2);
  expect(deliveries.map(({ payload }) => payload.n)).toEqual([0, 1]);
});
