import { expect, test } from "@jest/globals";
import { SURFACES } from "protocol/contract/surfaces.ts";
import { HttpClient } from "../support/http.ts";
import { useRelay } from "../support/use-relay.ts";

const relay = useRelay("alice");
const http = new HttpClient();

test.each([
  ["gateway", SURFACES.relayManifest.path],
  ["ops-reporting", SURFACES.activationPlan.path],
] as const)("%s alone, with PORT=0, publishes the port that it listens on", async (service, path) => {
  const pod = await relay.startProcess(service, { PORT: "0" });
  const { status, body } = await http.get(pod.url + path);
  expect(status).toBe(200);
  expect(JSON.stringify(body)).toContain(`http://127.0.0.1:${pod.port}`);
  expect(JSON.stringify(body)).not.toContain("127.0.0.1:0");
});

test("ws-connector alone, with PORT=0, names the port that it listens on in its advice", async () => {
  const pod = await relay.startProcess("ws-connector", { PORT: "0" });
  const alice = await relay.online(pod, "alice");
  const ack = await alice.ask(relay.envelope("alice", "message.send", { to: "agent://nobody", payload: {} }));
  expect(JSON.stringify(ack)).toContain(`http://127.0.0.1:${pod.port}/`);
});
