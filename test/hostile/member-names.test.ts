import { expect, test } from "@jest/globals";
import { AgentSocket, canonical, type Frame } from "../support/agent.ts";
import { HttpClient } from "../support/http.ts";
import { sourceFiles } from "../support/sources.ts";
import { useRelay } from "../support/use-relay.ts";

/**
 * V8 takes a member name that is written with an escape for one that it has met: one text of a stranger, and the envelope
 * of another is read wrong. Source: docs/security.md#member-names.
 */
const relay = useRelay("alice", "bob");
const http = new HttpClient();

/** What a stranger sends, who has no key. The name of the second member is a backslash. */
const PRIMER = '{"stands before":1,"\\\\":2}';

/** A good envelope whose payload has a member named with a line break. */
function goodEnvelope(): Frame {
  // Without a prototype: an ordinary object would tell V8 of its names, in the process that the relay shares with the test.
  const payload = Object.assign(Object.create(null), { "stands before": 1, "\n": 2 });
  return relay.envelope("alice", "message.send", { to: "agent://bob", payload });
}

test("A self-test with an odd member name does not keep the next good envelope from being verified", async () => {
  const gateway = await relay.startGateway();
  const post = (body: string) => http.post(`${gateway.url}/api/self-test`, body);
  expect(await post(`{"payload":${PRIMER}}`)).toMatchObject({ status: 400 });
  expect(await post(JSON.stringify(goodEnvelope()))).toMatchObject({ status: 200, body: { ok: true } });
});

test("A stranger's frame with an odd member name does not keep the next good envelope from its target", async () => {
  const pod = await relay.startWsConnector();
  const alice = await relay.online(pod, "alice");
  const bob = await relay.online(pod, "bob");
  const stranger = await AgentSocket.open(`${pod.url.replace("http", "ws")}/ws`);
  await stranger.answerTo(`{"payload":${PRIMER}}`);
  const envelope = goodEnvelope();
  expect(await alice.ask(envelope)).toMatchObject({ accepted: true });
  const { envelope: delivered } = await bob.delivered(envelope.id);
  expect(canonical(delivered)).toBe(canonical(envelope));
  for (const socket of [stranger, alice, bob]) await socket.close();
});

/** These hand JSON.parse texts without an escape in a name, or texts that the relay itself made. */
const WITH_JSON_PARSE = [
  "connector/src/parse-json.ts",
  "services/gateway/src/discovery/json-schema.ts",
  "shared/protocol/src/wire/json.ts",
  "shared/runtime/src/package-index.ts",
];

test("No other source of the services and of the connector hands a text to JSON.parse", async () => {
  const sources = (await sourceFiles()).filter(({ path }) =>
    /^(?:(?:shared|services)\/[^/]+|connector)\/src\/.*\.ts$/.test(path),
  );
  const parsing = sources.filter(({ text }) => /JSON\.parse\(|\.json\(\)/.test(text));
  expect(parsing.map(({ path }) => path)).toEqual(WITH_JSON_PARSE);
});
