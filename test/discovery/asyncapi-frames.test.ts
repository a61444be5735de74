import { describe, expect, test } from "@jest/globals";
import { type AgentSocket, type Frame, signed } from "../support/agent.ts";
import { registerWith, TestIssuer } from "../support/issuer.ts";
import { until } from "../support/until.ts";
import { given, giveUpCalls, useRelay } from "../support/use-relay.ts";
import { joining } from "./asyncapi-agent.ts";
import { AsyncApiReader } from "./asyncapi-reader.ts";

/** The frames of the AsyncAPI document are provoked from a relay, and compared. */

const relay = useRelay("ann", "bea-hmac", "cy", "dee", "eve");
giveUpCalls();
const [ANN, BEA, DEE] = ["agent://ann", "agent://bea-hmac", "agent://dee"] as const;
const [acme, globex] = [new TestIssuer("acme"), new TestIssuer("globex")];
const ACME = acme.record(["agent://acme.*"]);
const pod = given(async () => {
  await relay.writeKeys({ ...relay.keys.file, issuers: [ACME, globex.record(["agent://globex.*"])] });
  return await relay.startWhole();
});
/** As the pod's clients dial it. */
const relayName = () => new URL(pod.url).host;
const asyncapi = given(() => AsyncApiReader.read(pod.url));
const { join, pending } = joining(relay, pod, asyncapi);

/** The relay has something to say to these some seconds later. */
const paused = given(async () => {
  const slow = await relay.startWsConnector({ RELAY_ENVELOPES_PER_SECOND: "1" });
  const socket = await relay.online(slow, "eve");
  for (let n = 0; n < 15; n += 1) socket.send(relay.envelope("eve", "agent.heartbeat"));
  return socket;
});
const released = given(async () => {
  const socket = await relay.connect(pod);
  const answer = await socket.ask(registerWith(await globex.agent("agent://globex.brief"), relayName()));
  expect(answer).toMatchObject({ accepted: true });
  await relay.writeKeys({ ...relay.keys.file, issuers: [ACME] });
  return socket;
});

/** How a relay is brought to send the frame of each example. */
const PROVOCATIONS: Readonly<Record<string, () => Promise<Frame>>> = {
  "hello/hello": async () => (await relay.connect(pod)).frames[0],
  "ack.presence/registered": async () => await (await join("ann")).ask("agent.register"),
  "ack.presence/registered_with_credential": async () =>
    await (await relay.connect(pod)).ask(registerWith(await acme.agent("agent://acme.bob"), relayName())),
  "ack.presence/heartbeat": async () => await (await join("ann")).ask("agent.heartbeat"),
  "ack.message/target_online": async () => await (await join("ann")).ask("message.send", ANN),
  "ack.message/target_not_online": async () => await (await join("ann")).ask("message.send"),
  "ack.message/duplicate": async () => {
    const ann = await join("ann");
    const envelope = ann.made("message.send", ANN);
    const first = await ann.socket.ask(envelope);
    ann.socket.send(envelope);
    return await ann.socket.next("the second ack", ({ duplicate }) => duplicate, ann.socket.frames.indexOf(first));
  },
  "ack.session_request/target_online": async () => {
    await join("bea-hmac");
    return await (await join("ann")).ask("session.request", BEA);
  },
  "ack.session_request/target_not_online": async () => await (await join("ann")).ask("session.request"),
  "ack.session_decision/approved": async () => {
    const { target, sessionId } = await pending("ann", "bea-hmac");
    return await target.ask("session.approve", ANN, sessionId);
  },
  "error/malformed_json": async () => await (await relay.connect(pod)).answerTo("{"),
  "error/frame_too_large": async () => {
    const large = relay.envelope("ann", "message.send", { to: ANN, payload: { n: Array(1999).fill(1e20) } });
    return await (await join("ann")).socket.answerTo(JSON.stringify(large).replaceAll("100000000000000000000", "1e20"));
  },
  "error/invalid_envelope": async () => await refused((envelope) => ({ ...envelope, unknown: 1 })),
  "error/clock_skew": async () => await refused((envelope) => ({ ...envelope, ts: 1 })),
  "error/unknown_key": async () => await refused((envelope) => ({ ...envelope, key_id: "nobody-1" })),
  "error/bad_signature": async () => await refused((envelope) => ({ ...envelope, payload: {} })),
  "error/key_not_allowed": async () => {
    const { socket, key } = await join("ann");
    return await socket.ask(signed(key, { type: "agent.register", from: BEA }));
  },
  "error/invalid_credential": async () => {
    const bob = await acme.agent("agent://acme.bob");
    return await (await relay.connect(pod)).ask(registerWith({ ...bob, credential: "none" }, relayName()));
  },
  "error/not_registered": async () => {
    const socket = await relay.connect(pod);
    return await socket.ask(relay.envelope("cy", "message.send", { to: ANN }));
  },
  "error/unknown_session": async () => await (await join("ann")).ask("session.approve", BEA, `ses_${"0".repeat(26)}`),
  "error/not_your_session": async () => {
    const { sessionId } = await pending("ann", "bea-hmac");
    return await (await join("cy")).ask("session.approve", ANN, sessionId);
  },
  "error/session_closed": async () => {
    const { target, sessionId } = await pending("ann", "bea-hmac");
    await target.ask("session.reject", ANN, sessionId);
    return await target.ask("session.approve", ANN, sessionId);
  },
  "deliver/message": async () => {
    const ann = await join("ann");
    await ann.ask("message.send", ANN);
    return await ann.delivery("message.send");
  },
  "deliver/session_request": async () => await (await pending("ann", "bea-hmac")).target.delivery("session.request"),
  "deliver/session_approve": async () => await decided("session.approve"),
  "notice.pending_sessions/one": async () => {
    await (await join("ann")).ask("session.request", DEE);
    return await notice((await join("dee")).socket, "pending_sessions");
  },
  "notice.decided_sessions/one": async () => {
    const { requester, target, sessionId } = await pending("ann", "bea-hmac");
    await requester.socket.close();
    const isAway = async () => !(await target.ask("message.send", ANN)).target_delivery.can_deliver_realtime;
    await until("the requester is away", isAway);
    await target.ask("session.approve", ANN, sessionId);
    return await notice((await join("ann")).socket, "decided_sessions");
  },
  "notice.superseded/superseded": async () => {
    const { socket } = await join("ann");
    await join("ann");
    return await notice(socket, "superseded");
  },
  "notice.released/released": async () => await notice(released, "released"),
  "notice.draining/draining": async () => {
    const leaving = await relay.startWsConnector();
    const socket = await relay.connect(leaving);
    await leaving.stop();
    return await notice(socket, "draining");
  },
  "notice.slow_down/slow_down": async () => await notice(paused, "slow_down"),
  // The last: the pod needs a moment to find Redis again.
  "error/unavailable": async () => {
    const ann = await join("ann");
    await relay.redis.pause();
    try {
      return await ann.ask("message.send", ANN);
    } finally {
      await relay.redis.resume();
    }
  },
};

/** The answer to a message that was changed after it was signed. */
async function refused(change: (envelope: Frame) => Frame): Promise<Frame> {
  const ann = await join("ann");
  return await ann.socket.ask(change(ann.made("message.send", ANN)));
}

async function decided(type: string): Promise<Frame> {
  const { requester, target, sessionId } = await pending("ann", "bea-hmac");
  await target.ask(type, requester.id, sessionId);
  return await requester.delivery(type);
}

async function notice(socket: AgentSocket, name: string): Promise<Frame> {
  return await socket.next(name, (frame) => frame.notice === name);
}

/** Names and types of all members, at any depth. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shapeOf);
  if (typeof value !== "object" || value === null) return typeof value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shapeOf(member)]));
}

describe("a frame that the relay sends", () => {
  test.each(Object.keys(PROVOCATIONS))("is what the document says: %s", async (place) => {
    const [message = "", name] = place.split("/");
    const example = asyncapi.examplesOf(message).find((one) => one.name === name)?.payload;
    const frame = await PROVOCATIONS[place]?.();
    expect(asyncapi.messagesOf(frame)).toEqual([message]);
    expect(asyncapi.messagesOf({ ...frame, unknown: 1 })).toEqual([]);
    expect(shapeOf(example)).toEqual(shapeOf(frame));
    const { frame: kind, type, code, session_status } = frame;
    expect(example).toMatchObject(JSON.parse(JSON.stringify({ frame: kind, type, code, session_status })));
  });

  test("has an example, and each example but those of rarer errors is provoked here", () => {
    const { messages } = asyncapi.document.operations.sendFrame;
    const names: string[] = messages.map(({ $ref }: Frame) => $ref.split("/").at(-1));
    for (const name of names) expect([name, asyncapi.examplesOf(name).length]).not.toEqual([name, 0]);
    const places = names.flatMap((name) => asyncapi.examplesOf(name).map((example) => `${name}/${example.name}`));
    const known = Object.keys(PROVOCATIONS);
    expect(places.filter((place) => !place.startsWith("error/") && !known.includes(place))).toEqual([]);
    expect(known.filter((place) => !places.includes(place))).toEqual([]);
  });
});
