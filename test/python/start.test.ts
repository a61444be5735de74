import { once } from "node:events";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { expect, test } from "@jest/globals";
import { testAgent, untilState, WholeStage } from "../../connector/test/kit.ts";
import { SELF_SIGNED } from "../../connector/test/self-signed.ts";
import { type PythonConnectors, withPython } from "./python-connector.ts";

const { stage, python } = withPython(new WholeStage("alice", "bob"));

/** A Python connector, not started. */
function make(name: string, options: object = {}, { agent, keyId, key } = stage.agent(name)): PythonConnectors {
  const { privateKey: private_key } = key as { privateKey: string };
  python.make(name, { url: stage.url, agent, key: { key_id: keyId, alg: "ed25519", private_key }, ...options });
  return python;
}

test("A start in Python under an agent that is online elsewhere is refused, and the other stays", async () => {
  const other = await stage.online("bob", stage.url);
  await expect(make("bob").call("bob", "start")).rejects.toMatchObject({
    details: { code: "superseded_elsewhere", outcome: "refused", retry: "fix" },
  });
  expect(other.state.status).toBe("online");
});

test("A start in Python with a key that is not the agent's is refused for it though the agent is online elsewhere, which stays", async () => {
  const other = await stage.online("bob", stage.url);
  const wrong = { ...testAgent("bob"), keyId: stage.agent("bob").keyId };
  await expect(make("bob", {}, wrong).call("bob", "start")).rejects.toMatchObject({
    details: { code: "bad_signature", outcome: "refused", retry: "fix" },
  });
  expect(other.state.status).toBe("online");
});

test("A start in Python that is to take its agent over ends the other connection", async () => {
  const other = await stage.online("bob", stage.url);
  await make("bob", { take_over: true }).call("bob", "start");
  await untilState(other, "closed");
  expect(other.state).toMatchObject({ error: { code: "superseded" } });
});

test("A key that the relay does not know yet is presented again at the first start in Python", async () => {
  const late = testAgent("late");
  const started = make("late", {}, late).call("late", "start");
  await python.tells("the refusal", ({ problem }) => problem?.code === "unknown_key");
  await stage.relay.writeKeys({ signing_keys: [late.record] });
  await started;
  await stage.allow("alice", "bob");
});

test("A start in Python at a relay whose certificate nobody vouches for is refused at once", async () => {
  const server = createServer(SELF_SIGNED).listen(0, "localhost");
  await once(server, "listening");
  const url = `https://localhost:${(server.address() as AddressInfo).port}`;
  await expect(make("bob", { url }).call("bob", "start")).rejects.toMatchObject({
    details: { code: "unreachable", retry: "fix", hint: expect.stringContaining("SSL_CERT_FILE") },
  });
  server.close();
});
