import { createPublicKey, verify } from "node:crypto";
import { Parser } from "@asyncapi/parser";
import { expect, test } from "@jest/globals";
import { SignedEnvelope } from "relay-protocol/contract/envelope.ts";
import {
  ACK_FRAMES,
  AckFrame,
  DeliverFrame,
  ErrorFrame,
  HelloFrame,
  NoticeFrame,
} from "relay-protocol/contract/frames.ts";
import { CLOSE_CODES } from "relay-protocol/wire/close-codes.ts";
import { ERRORS, type ErrorCode } from "relay-protocol/wire/errors.ts";
import { ed25519Key, type Frame, hmacKey } from "../support/agent.ts";
import { given, useRelay } from "../support/use-relay.ts";
import { AsyncApiReader } from "./asyncapi-reader.ts";

const relay = useRelay();
const gateway = given(() =>
  relay.startGateway({ RELAY_WS_URL: "wss://relay.example/live", RELAY_ALTERNATE_WS_PATH: "/agents" }),
);
const asyncapi = given(() => AsyncApiReader.read(gateway.url));

const ENVELOPES = [
  "agent.register",
  "agent.heartbeat",
  "message.send",
  "message.word",
  "session.request",
  "session.approve",
  "session.reject",
];
const FRAMES = [
  "hello",
  ...Object.keys(ACK_FRAMES).map((name) => `ack.${name}`),
  "error",
  "deliver",
  ...NoticeFrame.options.map(({ shape }) => `notice.${shape.notice.value}`),
];
const MESSAGES = [...ENVELOPES, ...FRAMES];
const SCHEMAS = { hello: HelloFrame, ack: AckFrame, error: ErrorFrame, deliver: DeliverFrame, notice: NoticeFrame };

test("The AsyncAPI parser finds no error and no warning in it, and one information: there is a newer AsyncAPI", async () => {
  const { document: parsed, diagnostics } = await new Parser().parse(asyncapi.text);
  const INFORMATION = 2;
  expect(diagnostics.map(({ code, severity }) => [code, severity])).toEqual([["asyncapi-latest-version", INFORMATION]]);
  expect(parsed?.version()).toBe("3.0.0");
});

test("It tells both paths, under the address of the settings", () => {
  expect(asyncapi.document.servers.relay).toMatchObject({
    host: "relay.example",
    protocol: "wss",
    pathname: "/live",
  });
  expect(asyncapi.paths).toEqual(["/ws", "/agents"]);
});

test("The relay receives every envelope type and sends every frame, ack and notice of the contract", () => {
  const { operations, channels } = asyncapi.document;
  for (const { action, messages } of Object.values<Frame>(operations)) {
    const names = messages.map(({ $ref }: Frame) => $ref.split("/").at(-1));
    expect(names).toEqual(action === "receive" ? ENVELOPES : FRAMES);
  }
  for (const { messages } of Object.values<Frame>(channels)) expect(Object.keys(messages)).toEqual(MESSAGES);
});

test.each(MESSAGES)("Each example of %s is that message and no other, also by the relay's own schemas", (name) => {
  const ours = SCHEMAS[name.split(".")[0] as keyof typeof SCHEMAS] ?? SignedEnvelope;
  expect(asyncapi.examplesOf(name)).not.toEqual([]);
  for (const { payload } of asyncapi.examplesOf(name)) {
    expect(asyncapi.messagesOf(payload)).toEqual([name]);
    expect(ours.safeParse(payload).error).toBeUndefined();
  }
});

test.each(ENVELOPES.filter((name) => name !== "message.word"))("The message %s is the type of that name", (name) => {
  expect(asyncapi.document.components.schemas[name].properties.type.const).toBe(name);
});

test.each(ENVELOPES)("The example of %s is truly signed with the published key", (name) => {
  const { test_vectors } = asyncapi.document["x-signing"];
  const x = test_vectors.find(({ alg }: Frame) => alg === "ed25519").key.public_key;
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  const { sig, ...envelope } = asyncapi.examplesOf(name)[0]?.payload ?? {};
  expect(verify(null, Buffer.from(asyncapi.canonical(envelope)), key, Buffer.from(sig, "base64url"))).toBe(true);
});

test("A reader who has nothing else makes the signatures of its test vectors, of both algorithms", () => {
  const { test_vectors } = asyncapi.document["x-signing"];
  expect(test_vectors.map(({ alg }: Frame) => alg)).toEqual(["ed25519", "hmac-sha256"]);
  for (const { alg, key, envelope, canonical, sig } of test_vectors) {
    const { sign } = alg === "ed25519" ? ed25519Key("", key.private_key) : hmacKey("", key.secret);
    expect(asyncapi.canonical(envelope)).toBe(canonical);
    expect(sign(canonical)).toBe(sig);
  }
});

test("How to sign stands in words too, as the signing manifest has it, and leads to it and to the self-test", async () => {
  const { info, "x-signing": signing } = asyncapi.document;
  const manifest: Frame = await (await fetch(signing.signing_manifest)).json();
  const { signing_manifest, ...facts } = signing;
  expect(manifest).toMatchObject(facts);
  expect(info.description).toContain(manifest.canonical_signing_order.map((name: string) => `\`${name}\``).join(", "));
  for (const { sig_characters } of manifest.algorithms) expect(info.description).toContain(` ${sig_characters} `);
  for (const link of [signing_manifest, `${manifest.self_test.url}?explain=1`]) {
    expect(info.description).toContain(link);
  }
});

test("Every error code has an example with what to do, and every close code stands at the server", () => {
  const codes = (Object.keys(ERRORS) as ErrorCode[]).filter((code) => ERRORS[code].websocket);
  expect(asyncapi.examplesOf("error").map(({ name }) => name)).toEqual(codes);
  for (const { name, payload } of asyncapi.examplesOf("error")) {
    const { hint, retry } = ERRORS[name as ErrorCode];
    expect(payload).toMatchObject({ code: name, hint, retry });
  }
  expect(asyncapi.document.servers.relay["x-close-codes"]).toEqual(Object.values(CLOSE_CODES));
});
