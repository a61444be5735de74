import { readFile, stat } from "node:fs/promises";
import { afterAll, describe, expect, test } from "@jest/globals";
import { Connector } from "agent-relay-connector";
import { watchLeaks } from "../../test/support/until.ts";
import { startRelay } from "../src/index.ts";

const noLeaks = watchLeaks();
afterAll(() => noLeaks());

describe("A relay for tests", () => {
  test("gives agents what a connector takes, and they believe each other", async () => {
    await using relay = await startRelay();
    await using alice = new Connector(await relay.agent("alice"));
    await using bob = new Connector({ ...(await relay.agent("bob")), requireVerified: true });
    bob.on("delivery", (delivery) => delivery.reply(delivery.payload));
    await Promise.all([alice.start(), bob.start()]);
    const { payload, verified, issuer } = await alice.ask("agent://bob", { message: "hi" }, { seal: true });
    expect({ payload, verified, issuer }).toEqual({ payload: { message: "hi" }, verified: "agent", issuer: "testing" });
  });

  test("gives the same agent under the same name, and none under what is no name", async () => {
    await using relay = await startRelay();
    const [first, again] = await Promise.all([relay.agent("alice"), relay.agent("alice")]);
    expect(again).toEqual(first);
    await expect(relay.agent("agent://alice")).rejects.toThrow(TypeError);
    await expect(relay.agent("../alice")).rejects.toThrow(TypeError);
  });

  test("has a key file of each agent, for its user alone, until it stops", async () => {
    const relay = await startRelay();
    const { keyFile, agent, credential } = await relay.agent("alice");
    expect((await stat(keyFile)).mode & 0o777).toBe(0o600);
    expect(JSON.parse(await readFile(keyFile, "utf8"))).toMatchObject({ agent_id: agent, credential });
    await relay.stop();
    await expect(stat(keyFile)).rejects.toMatchObject({ code: "ENOENT" });
    await relay.stop();
  });

  test("has an API key for sends over HTTP", async () => {
    await using relay = await startRelay();
    const answer = await fetch(`${relay.url}/v1/messages/send`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-api-key": relay.apiKey },
      body: JSON.stringify({ from: "agent://alice", to: "agent://bob", message: "hi" }),
    });
    expect(answer.status).toBe(202);
  });

  test("takes settings, and says which are invalid", async () => {
    await using relay = await startRelay({ environment: { RELAY_CONTACT: "mailto:operator@example.org" } });
    expect(await (await fetch(`${relay.url}/.well-known/security.txt`)).text()).toContain("operator@example.org");
    await expect(startRelay({ environment: { RELAY_PARTITIONS: "none" } })).rejects.toThrow(/RELAY_PARTITIONS/);
  });

  test("on a Redis Cluster is a relay like any other, whatever REDIS_URL says", async () => {
    await using relay = await startRelay({ cluster: true, environment: { REDIS_URL: "redis://127.0.0.1:1" } });
    await using alice = new Connector(await relay.agent("alice"));
    await using bob = new Connector(await relay.agent("bob"));
    bob.on("delivery", (delivery) => delivery.reply(delivery.payload));
    await Promise.all([alice.start(), bob.start()]);
    expect((await alice.ask("agent://bob", { message: "hi" })).payload).toEqual({ message: "hi" });
  }, 60_000);

  test("shares nothing with a second one beside it", async () => {
    await using one = await startRelay();
    await using other = await startRelay();
    await using stranger = new Connector({ ...(await one.agent("carol")), url: other.url });
    const refused = new Promise((resolve) => stranger.on("error", resolve));
    stranger.start().catch(() => {});
    expect(await refused).toMatchObject({ code: "invalid_credential", outcome: "refused" });
    await using alice = new Connector(await one.agent("alice"));
    await using namesake = new Connector(await other.agent("alice"));
    await Promise.all([alice.start(), namesake.start()]);
    await one.stop();
    expect((await namesake.send("agent://alice", { hello: "me" })).delivery.status).toBe("online");
  });
});
