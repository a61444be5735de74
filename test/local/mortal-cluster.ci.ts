import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { MortalCluster } from "../../deploy/docker/mortal-redis.ts";
import { privateNodes } from "../../deploy/local/private-nodes.ts";
import { watchLeaks } from "../support/until.ts";

const noLeaks = watchLeaks();
const cluster = new MortalCluster({ runner: privateNodes(), nodeTimeoutMs: 1000 });

beforeAll(() => cluster.start(), 60_000);
afterAll(async () => {
  await cluster.stop();
  await noLeaks();
});

/** By node, in their order; undefined for one that is dead. */
async function roles(): Promise<(string | undefined)[]> {
  const said = cluster.nodes.map((node) => node.ask("ROLE").catch(() => ""));
  return (await Promise.all(said)).map((text) => /^(?:master|slave)\b/m.exec(text)?.[0]);
}

test("a cluster of the image `all` loses one primary after the other, as long as a replica takes its place", async () => {
  await cluster.nodes[0]?.ask("SET b kept", "WAIT 1 1000");
  await cluster.fail();
  expect(await roles()).toEqual([undefined, "master", "master", "master", "slave", "slave"]);
  expect(await cluster.nodes[3]?.ask("GET b")).toContain("kept");
  await cluster.fail();
  await cluster.fail();
  const heirs = [undefined, undefined, undefined, "master", "master", "master"];
  expect(await roles()).toEqual(heirs);
  await cluster.fail();
  expect(await roles()).toEqual(heirs);
}, 60_000);

test("it has its replicas again when it is restored, and can lose primaries again", async () => {
  await cluster.restore();
  expect(await roles()).toEqual(["slave", "slave", "slave", "master", "master", "master"]);
  expect(await cluster.nodes[0]?.ask("READONLY", "GET b")).toContain("kept");
  await cluster.fail();
  expect(await roles()).toEqual(["master", "slave", "slave", undefined, "master", "master"]);
}, 60_000);
