import { afterAll, afterEach, beforeAll, expect } from "@jest/globals";
import { AckFrame, DeliverFrame, ErrorFrame, HelloFrame, NoticeFrame } from "relay-protocol/contract/frames.ts";
import { canonical, type Frame } from "../support/agent.ts";
import { TestRelay } from "../support/relay-under-test.ts";
import { waitForAnswers } from "../support/use.ts";

const SCHEMAS = { hello: HelloFrame, ack: AckFrame, error: ErrorFrame, deliver: DeliverFrame, notice: NoticeFrame };

/** The fields of an ack beside `frame`, `envelope_id`, `type`, `accepted`, `duplicate`, `next`. */
const ACK_FIELDS = {
  agent: ["presence"],
  message: ["target_delivery"],
  session: ["session_id", "session_status", "target_delivery"],
};

/**
 * A relay for the tests of one file. After each test every frame that any client saw is validated against its schema.
 */
export function conformingRelay(...names: readonly string[]): TestRelay {
  // Leaks are not looked for: the tests run on containers too, and the Docker engine's client keeps connections.
  const relay = new TestRelay(...names);
  waitForAnswers();
  beforeAll(() => relay.start());
  afterEach(() => {
    for (const socket of relay.sockets) socket.texts.splice(0).forEach(expectConforming);
  });
  afterAll(() => relay.stop());
  return relay;
}

function expectConforming(text: string): void {
  expect(text).toMatch(/^\{"frame":"/);
  const frame: Frame = JSON.parse(text);
  const schema = SCHEMAS[frame.frame as keyof typeof SCHEMAS];
  expect(schema.safeParse(frame).error).toBeUndefined();
  if (frame.frame === "ack") expectAckFields(frame);
  if (frame.frame === "error") expectErrorFields(frame);
  if (frame.frame === "deliver") expectDelivery(text, frame);
}

function expectAckFields(ack: Frame): void {
  const { frame, envelope_id, type, accepted, duplicate, next, credential_expires_at_iso, ...rest } = ack;
  const family = type.split(".")[0] as keyof typeof ACK_FIELDS;
  expect(Object.keys(rest).sort()).toEqual(ACK_FIELDS[family]);
  if (credential_expires_at_iso !== undefined) expect(family).toBe("agent");
  const { status, can_deliver_realtime } = ack.target_delivery ?? {};
  expect(can_deliver_realtime ?? false).toBe(status === "online");
  const isPublication = type === "session.request" || family === "message";
  expect(next !== undefined).toBe(isPublication && status !== "online" && duplicate === undefined);
}

function expectErrorFields({ code, retry_after_ms, server_time }: Frame): void {
  expect(retry_after_ms !== undefined).toBe(code === "rate_limited" || code === "unavailable");
  expect(server_time !== undefined).toBe(code === "clock_skew");
}

/** The envelope stands in the frame as its canonical text, with `sig` as the last member. */
function expectDelivery(text: string, { envelope, session_id }: Frame): void {
  const signedText = `${canonical(envelope).slice(0, -1)},"sig":"${envelope.sig}"}`;
  expect(text.endsWith(`"envelope":${signedText}}`)).toBe(true);
  expect(session_id !== undefined).toBe(envelope.type.startsWith("session."));
}
