import { hash } from "node:crypto";
import { expect, test } from "@jest/globals";
import type { Frame } from "../support/agent.ts";
import { HttpClient } from "../support/http.ts";
import { registerWith, TestIssuer } from "../support/issuer.ts";
import { given, useRelay } from "../support/use-relay.ts";
import { joining } from "./asyncapi-agent.ts";
import { AsyncApiReader } from "./asyncapi-reader.ts";

/** The envelopes of the AsyncAPI document are sent to a relay, by agents with a key of either algorithm. */

const relay = useRelay("ann", "bea-hmac");
const acme = new TestIssuer("acme");
const pod = given(async () => {
  await relay.writeKeys({ ...relay.keys.file, issuers: [acme.record(["agent://acme.*"])] });
  return await relay.startWhole();
});
const asyncapi = given(() => AsyncApiReader.read(pod.url));
const { join, pending } = joining(relay, pod, asyncapi);

const MESSAGES = ["message.send", "message.word", "session.request"];
const DECISIONS = ["session.approve", "session.reject"];
const RECEIVED = ["agent.register", "agent.heartbeat", ...MESSAGES, ...DECISIONS];
const fromEither = (messages: readonly string[]) =>
  messages.flatMap((message) => [[message, "ann", "bea-hmac"] as const, [message, "bea-hmac", "ann"] as const]);

test.each(fromEither(["agent.register", "agent.heartbeat"]))(
  "The example %s of %s is accepted, with the members replaced that its words name, and no other",
  async (message, name, _other) => {
    const agent = await join(name);
    expect(await agent.ask(message)).toMatchObject({ accepted: true, presence: { status: "online" } });
  },
);

test.each(fromEither(MESSAGES))("So is %s of %s, and it reaches %s", async (message, name, otherName) => {
  const [agent, other] = [await join(name), await join(otherName)];
  const envelope = agent.made(message, other.id);
  expect(await agent.socket.ask(envelope)).toMatchObject({ accepted: true, target_delivery: { status: "online" } });
  expect((await other.socket.delivered(envelope.id)).envelope).toEqual(envelope);
});

test.each(fromEither(DECISIONS))("So is %s of %s, and it reaches %s", async (message, name, otherName) => {
  const { requester, target, sessionId } = await pending(otherName, name);
  const decision = target.made(message, requester.id, sessionId);
  expect(await target.socket.ask(decision)).toMatchObject({ accepted: true, session_id: sessionId });
  expect((await requester.socket.delivered(decision.id)).envelope).toEqual(decision);
});

test("Its approval carries the digest of its request, as a reader of the document makes it", () => {
  const [request, approval] = ["session.request", "session.approve"].map(
    (name) => asyncapi.examplesOf(name)[0]?.payload,
  );
  const { sig, ...unsigned } = request as Frame;
  const signed = `${asyncapi.canonical(unsigned).slice(0, -1)},"sig":"${sig}"}`;
  expect(approval?.payload.request_sha256).toBe(hash("sha256", signed, "base64url"));
});

test("It tells which name of this relay a register with a credential carries", async () => {
  const socket = await relay.connect(pod);
  const name = new URL(pod.url).host;
  expect(asyncapi.document.info.description).toContain(`\`${name}\``);
  expect(await socket.ask(registerWith(await acme.agent("agent://acme.bob"), name))).toMatchObject({ accepted: true });
});

test("There is an example for each message that the relay receives", () => {
  const { messages } = asyncapi.document.operations.receiveEnvelope;
  expect(messages.map(({ $ref }: Frame) => $ref.split("/").at(-1))).toEqual(RECEIVED);
});

test("Both addresses of the document take agents", async () => {
  expect(`http://${asyncapi.document.servers.relay.host}`).toBe(pod.url);
  for (const path of asyncapi.paths) await join("ann", path);
});

test("The self-test that it names passes an example, and has the same canonical text as a reader of the document", async () => {
  const envelope = (await join("ann")).made("message.send");
  const { method, url } = asyncapi.document["x-signing"].self_test;
  expect(method).toBe("POST");
  const { body } = await new HttpClient().post(`${url}?explain=1`, envelope);
  expect(body).toMatchObject({ stage: "pass", canonical: asyncapi.canonical(envelope) });
});
