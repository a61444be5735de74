import { createPublicKey, verify } from "node:crypto";
import { Parser } from "@asyncapi/parser";
import { beforeAll, expect, test } from "@jest/globals";
import { Ajv } from "ajv";
import addFormats from "ajv-formats";
import { CLOSE_CODES, ERRORS, type ErrorCode } from "protocol/contract/errors.ts";
import { AckFrame, DeliverFrame, ErrorFrame, HelloFrame, NoticeFrame } from "protocol/contract/frames.ts";
import { SignedEnvelope } from "protocol/contract/responses.ts";
import { canonical } from "../support/agent.ts";
import { given, useRelay } from "../support/use-relay.ts";

const relay = useRelay();
const gateway = given(() =>
  relay.startGateway({ RELAY_WS_URL: "wss://relay.example/live", RELAY_ALTERNATE_WS_PATH: "/agents" }),
);
let text: string;
// biome-ignore lint/suspicious/noExplicitAny: the document is what is tested.
let document: any;

beforeAll(async () => {
  text = await (await fetch(`${gateway.url}/asyncapi.json`)).text();
  document = JSON.parse(text);
});

const ENVELOPES = [
  "agent.register",
  "agent.heartbeat",
  "message.send",
  "session.request",
  "session.approve",
  "session.reject",
];
const FRAMES = { hello: HelloFrame, ack: AckFrame, error: ErrorFrame, deliver: DeliverFrame, notice: NoticeFrame };
const MESSAGES = [...ENVELOPES, ...Object.keys(FRAMES)];
const examplesOf = (name: string): { payload: Record<string, unknown> }[] =>
  document.components.messages[name].examples;

test("The AsyncAPI parser finds no error in it", async () => {
  const { document: parsed, diagnostics } = await new Parser().parse(text);
  const ERROR = 0;
  expect(diagnostics.filter(({ severity }) => severity === ERROR)).toEqual([]);
  expect(parsed?.version()).toBe("3.0.0");
});

test("It tells both paths, under the address of the settings", () => {
  expect(document.servers.relay).toMatchObject({ host: "relay.example", protocol: "wss", pathname: "/live" });
  expect(Object.values<{ address: string }>(document.channels).map(({ address }) => address)).toEqual([
    "/ws",
    "/agents",
  ]);
});

test("The relay receives every envelope type and sends every frame, on both", () => {
  const names = (messages: { $ref: string }[]) => messages.map(({ $ref }) => $ref.split("/").at(-1));
  for (const { action, messages } of Object.values<{ action: string; messages: { $ref: string }[] }>(
    document.operations,
  )) {
    expect(names(messages)).toEqual(action === "receive" ? ENVELOPES : Object.keys(FRAMES));
  }
  for (const { messages } of Object.values<{ messages: object }>(document.channels)) {
    expect(Object.keys(messages)).toEqual(MESSAGES);
  }
});

test.each(MESSAGES)("The examples of %s are what its schemas take, the relay's own included", (name) => {
  const ajv = addFormats.default(new Ajv({ strict: false }));
  const { schemas } = document.components;
  const validate = ajv.compile({ ...document.components.messages[name].payload, components: { schemas } });
  const ours = FRAMES[name as keyof typeof FRAMES] ?? SignedEnvelope;
  expect(examplesOf(name)).not.toEqual([]);
  for (const { payload } of examplesOf(name)) {
    validate(payload);
    expect(validate.errors).toBeNull();
    expect(ours.safeParse(payload).error).toBeUndefined();
  }
});

test.each(ENVELOPES)("The example of %s is truly signed with the published key", async (name) => {
  const manifest = await (await fetch(`${gateway.url}/.well-known/signing-manifest.json`)).json();
  const { test_vectors } = manifest as { test_vectors: { alg: string; key: { public_key: string } }[] };
  const x = test_vectors.find(({ alg }) => alg === "ed25519")?.key.public_key as string;
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  const [example] = examplesOf(name) as [{ payload: { sig: string } }];
  const { sig, ...envelope } = example.payload;
  expect(verify(null, Buffer.from(canonical(envelope)), key, Buffer.from(sig, "base64url"))).toBe(true);
});

test("Every error code and close code is told on both channels", () => {
  const codes = (Object.keys(ERRORS) as ErrorCode[]).filter((code) => ERRORS[code].websocket);
  for (const channel of Object.values<Record<string, unknown>>(document.channels)) {
    expect((channel["x-error-codes"] as { code: string }[]).map(({ code }) => code)).toEqual(codes);
    expect(channel["x-close-codes"]).toEqual(Object.values(CLOSE_CODES));
  }
});
