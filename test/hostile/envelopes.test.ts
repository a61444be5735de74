import { once } from "node:events";
import { afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { ERRORS } from "relay-protocol/wire/errors.ts";
import { parseJson } from "../../connector/src/parse-json.ts";
import { type AgentKey, type AgentSocket, canonical, type Frame } from "../support/agent.ts";
import { fc } from "../support/fast-check.ts";
import { until } from "../support/until.ts";
import { badJson, badValue, FIELDS, goodContents, isSignedBy, respelled } from "./support/envelopes.ts";
import { frame, isUtf8, OPCODES } from "./support/frames.ts";
import { RawWebsocket } from "./support/raw-websocket.ts";
import { type AttackedService, MARK, MARKED_NAME, relayUnderAttack } from "./support/under-attack.ts";

const SENDERS = ["alice", "alice-hmac"] as const;
const BOB = "agent://bob";
const CODES = Object.entries(ERRORS).flatMap(([code, { websocket }]) => (websocket ? code : []));
const { relay, start } = relayUnderAttack(...SENDERS, "bob");
const senders = new Map<string, AgentSocket>();
let pod: AttackedService;
let bob: AgentSocket;

beforeAll(async () => {
  pod = await start("ws-connector", { RELAY_ENVELOPES_PER_SECOND: "0", RELAY_BYTES_PER_SECOND: "0" });
  bob = await relay.online(pod, "bob");
  for (const name of SENDERS) senders.set(name, await relay.online(pod, name));
  for (let n = 0; n < 200; n += 1) await answerTo("alice", JSON.stringify(message("alice", { payload: { n } })));
  await answerTo("alice", "[".repeat(20_000));
  await pod.remember();
});

const socketOf = (name: string) => senders.get(name) as AgentSocket;
const keyOf = (name: string) => relay.keys.agents.get(name) as AgentKey;
const message = (name: string, fields: object = {}): Frame =>
  relay.envelope(name, "message.send", { to: BOB, ...fields });

/** The answer to a text: one, neither none nor two, which the message behind it shows: its target was never seen. */
async function answerTo(name: string, text: string): Promise<Frame> {
  const socket = socketOf(name);
  const from = socket.frames.length;
  const last = message(name, { to: "agent://never-seen" });
  socket.send(text);
  socket.send(last);
  const answers = () => socket.frames.slice(from).filter((one) => one.frame === "ack" || one.frame === "error");
  while (answers().at(-1)?.envelope_id !== last.id) await once(socket.socket, "message");
  expect(answers()).toHaveLength(2);
  return answers()[0];
}

/** A refusal is one of the closed set and repeats nothing. */
async function expectRefused(name: string, text: string): Promise<void> {
  const answer = await answerTo(name, text);
  expect(CODES).toContain(answer.code);
  expect(JSON.stringify({ ...answer, envelope_id: "" })).not.toContain(MARK);
}

/** The answer is an ack exactly when the text holds an envelope that the sender signed and that is for Bob. */
async function expectJudged(name: string, text: string): Promise<void> {
  const value = parsed(text);
  const isSigned = typeof value === "object" && value !== null && isSignedBy(keyOf(name), value);
  if (!isSigned) return await expectRefused(name, text);
  const answer = await answerTo(name, text);
  expect(answer.frame === "ack" || CODES.includes(answer.code)).toBe(true);
}

function parsed(text: string): Frame {
  try {
    return parseJson(text) as Frame;
  } catch {
    return undefined;
  }
}

/** Bob has what was acknowledged as delivered, once each, and nothing besides; every byte of it is signed. */
afterEach(async () => {
  const acked = [...senders.values()]
    .flatMap(({ frames }) => frames)
    .filter((one) => one.frame === "ack" && one.duplicate === undefined && one.target_delivery?.can_deliver_realtime)
    .map((ack) => ack.envelope_id);
  await until("all is delivered", () => bob.deliveries.length >= acked.length);
  await bob.ask(message("bob", { to: "agent://never-seen" }));
  expect(bob.deliveries.map(({ envelope }) => envelope.id).sort()).toEqual(acked.sort());
  for (const text of bob.texts.filter((one) => one.startsWith('{"frame":"deliver"'))) expectSigned(text);
});

function expectSigned(text: string): void {
  const { envelope } = parseJson(text) as Frame;
  expect(isSignedBy(keyOf(envelope.from.slice("agent://".length)), envelope)).toBe(true);
  expect(text).toContain(`"envelope":${canonical(envelope).slice(0, -1)},"sig":"${envelope.sig}"}`);
}

const sender = fc.constantFrom(...SENDERS);

describe("a signed envelope", () => {
  test("is accepted and delivered once, whatever its contents and however it is spelled", async () => {
    const sent: Frame[] = [];
    const spelling = fc.infiniteStream(fc.nat()).map((stream) => (count: number) => stream.next().value % count);
    const property = fc.asyncProperty(sender, goodContents, spelling, async (name, contents, choose) => {
      const envelope = message(name, contents);
      const answer = await answerTo(name, respelled(envelope, choose));
      expect(answer).toMatchObject({ accepted: true, envelope_id: envelope.id });
      sent.push(envelope);
    });
    await fc.assert(property, { numRuns: 120 });
    for (const envelope of sent) {
      const { envelope: delivered } = await bob.delivered(envelope.id);
      expect(canonical(delivered)).toBe(canonical(envelope));
    }
  });
});

describe("whatever is not what its sender signed gets one answer with a code, and is delivered to nobody:", () => {
  test("any field changed after it was signed", async () => {
    const property = fc.asyncProperty(sender, fc.constantFrom(...FIELDS), badValue, async (name, field, value) => {
      await expectJudged(name, JSON.stringify({ ...message(name), [field]: value }));
    });
    await fc.assert(property, { numRuns: 250 });
  });

  test("any field left out, and any field added", async () => {
    const names = fc.constantFrom(
      "extra",
      "alg",
      "constructor",
      "toJSON",
      MARKED_NAME,
      "Id",
      "id ",
      "signature",
      "payload\0",
    );
    const whole = () => message("alice", { task_id: "task" });
    for (const field of FIELDS) await expectRefused("alice", JSON.stringify({ ...whole(), [field]: undefined }));
    const property = fc.asyncProperty(names, badValue, async (name, value) => {
      await expectRefused("alice", JSON.stringify({ ...message("alice"), [name]: value }));
    });
    await fc.assert(property, { numRuns: 60 });
  });

  test("any field of the wrong form, though it was signed so", async () => {
    const fields = fc.constantFrom(
      ...FIELDS.filter((name) => name !== "payload" && name !== "task_id" && name !== "id"),
    );
    const property = fc.asyncProperty(sender, fields, badValue, async (name, field, value) => {
      await expectRefused(name, JSON.stringify(message(name, { [field]: value })));
    });
    await fc.assert(property, { numRuns: 150 });
  });

  test("any member spelled as JSON should not be", async () => {
    const property = fc.asyncProperty(sender, fc.constantFrom(...FIELDS), badJson, async (name, field, text) => {
      const members = Object.entries(message(name)).map(([one, value]) => [one, JSON.stringify(value)]);
      const spelled = Object.entries({ ...Object.fromEntries(members), [field]: text });
      await expectJudged(name, `{${spelled.map(([one, value]) => `"${one}":${value}`).join(",")}}`);
    });
    await fc.assert(property, { numRuns: 150 });
  });

  test("any JSON at all", async () => {
    const property = fc.asyncProperty(
      fc.json({ stringUnit: "binary" }),
      async (text) => await expectRefused("alice", text),
    );
    await fc.assert(property, { numRuns: 100 });
  });

  test("the text cut short, or run together with another", async () => {
    const property = fc.asyncProperty(sender, fc.nat(), fc.boolean(), async (name, at, isDoubled) => {
      const text = JSON.stringify(message(name));
      await expectRefused(name, isDoubled ? text.slice(at % text.length) + text : text.slice(0, at % text.length));
    });
    await fc.assert(property, { numRuns: 80 });
  });

  test("texts as long as a frame may be, hundreds of them", async () => {
    for (let n = 0; n < 300; n += 1) {
      await expectRefused("alice", JSON.stringify({ ...message("alice"), payload: { text: `${n}`.repeat(10_000) } }));
    }
  });

  test("any byte of it turned, be that UTF-8 or not", async () => {
    const property = fc.asyncProperty(sender, fc.nat(), fc.integer({ min: 1, max: 255 }), async (name, at, turn) => {
      const bytes = Buffer.from(JSON.stringify(message(name)));
      bytes[at % bytes.length] = (bytes[at % bytes.length] as number) ^ turn;
      if (isUtf8(bytes)) return await expectJudged(name, bytes.toString());
      const socket = await RawWebsocket.open(pod.port);
      socket.send([frame(OPCODES.text, bytes)]);
      expect(await socket.untilClosed()).toBe(1007);
      expect(socket.answers).toEqual([]);
      await socket.end();
    });
    await fc.assert(property, { numRuns: 150 });
  });

  test("a member twice, of which the last one counts", async () => {
    const property = fc.asyncProperty(sender, fc.constantFrom(...FIELDS), badValue, async (name, field, value) => {
      const text = JSON.stringify(message(name));
      await expectJudged(name, `${text.slice(0, -1)},"${field}":${JSON.stringify(value)}}`);
    });
    await fc.assert(property, { numRuns: 80 });
  });

  test("an envelope of another sender, under each key that is not his", async () => {
    for (const name of SENDERS) {
      const other = SENDERS.find((one) => one !== name) as string;
      await expectRefused(name, JSON.stringify(message(name, { from: `agent://${other}` })));
      await expectRefused(name, JSON.stringify({ ...message(name), key_id: keyOf(other).keyId }));
      await expectRefused(name, JSON.stringify(message(other)));
    }
  });
});
