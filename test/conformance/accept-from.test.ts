import { beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import type { AgentSocket, Frame } from "../support/agent.ts";
import { HttpClient } from "../support/http.ts";
import { given } from "../support/use-relay.ts";
import { conformingRelay } from "./conforming.ts";

const relay = conformingRelay("alice", "bob-hmac", "mallory-hmac", "shy");
const PARTITIONS = { RELAY_PARTITIONS: "3" };
const one = given(() => relay.startWsConnector(PARTITIONS));
const two = given(() => relay.startWsConnector(PARTITIONS));
const gateway = given(() => relay.startGateway(PARTITIONS));
const alice = given(() => relay.online(one, "alice"));
const mallory = given(() => relay.online(two, "mallory-hmac"));
const http = new HttpClient();
let bob: AgentSocket;

const register = (accept_from?: readonly string[]) =>
  relay.envelope("bob-hmac", "agent.register", { payload: accept_from === undefined ? {} : { accept_from } });
const message = (from: string) => relay.envelope(from, "message.send", { to: "agent://bob-hmac", payload: {} });
const REFUSAL = { frame: "error", code: "not_accepted_by_target", retry: "never" };

beforeAll(async () => {
  bob = await relay.connect(one);
});
beforeEach(async () => {
  expect(await bob.ask(register(["agent://alice"]))).toMatchObject({ presence: { status: "online" } });
});

async function post(path: string, from: string, fields: Frame) {
  const body = { from: `agent://${from}`, to: "agent://bob-hmac", ...fields };
  return await http.post(gateway.url + path, body, relay.credentials(from));
}

describe("an agent that registered with accept_from", () => {
  test("gets the messages of those that it names, and learns nothing of what others send", async () => {
    const wanted = message("alice");
    const unwanted = message("mallory-hmac");
    expect(await mallory.ask(unwanted)).toMatchObject({ ...REFUSAL, envelope_id: unwanted.id });
    expect(await alice.ask(wanted)).toMatchObject({ target_delivery: { can_deliver_realtime: true } });
    await bob.delivered(wanted.id);
    expect(bob.texts.some((text) => text.includes(unwanted.id))).toBe(false);
  });

  test("is asked for no session by others, by websocket or HTTP", async () => {
    const request = relay.envelope("mallory-hmac", "session.request", {
      to: "agent://bob-hmac",
      payload: { purpose: "p" },
    });
    expect(await mallory.ask(request)).toMatchObject(REFUSAL);
    const answer = await post("/v1/sessions/request", "mallory-hmac", { purpose: "p" });
    expect(answer).toMatchObject({ status: 403, body: { code: "not_accepted_by_target", retry: "never" } });
    expect((await post("/v1/sessions/request", "alice", { purpose: "p" })).status).toBe(202);
  });

  test("is reached by no message of others over HTTP", async () => {
    const answer = await post("/v1/messages/send", "mallory-hmac", { message: "hi" });
    expect(answer).toMatchObject({ status: 403, body: { code: "not_accepted_by_target", retry: "never" } });
    expect((await post("/v1/messages/send", "alice", { message: "hi" })).status).toBe(202);
  });

  test("has it refused while it is offline, too, until it registers without it", async () => {
    await bob.close();
    expect(await mallory.ask(message("mallory-hmac"))).toMatchObject(REFUSAL);
    bob = await relay.connect(two);
    await bob.ask(register());
    const wanted = message("mallory-hmac");
    expect(await mallory.ask(wanted)).toMatchObject({ accepted: true });
    await bob.delivered(wanted.id);
  });

  test("gets the decisions of whomever it asked for a session", async () => {
    await bob.ask(register([]));
    const request = relay.envelope("bob-hmac", "session.request", {
      to: "agent://mallory-hmac",
      payload: { purpose: "p" },
    });
    const { session_id } = await bob.ask(request);
    const decision = relay.envelope("mallory-hmac", "session.reject", {
      to: "agent://bob-hmac",
      payload: { session_id },
    });
    expect(await mallory.ask(decision)).toMatchObject({ accepted: true });
    await bob.delivered(decision.id);
  });
});

test("Nobody is closed for sending to agents that do not accept it", async () => {
  for (let n = 0; n < 25; n += 1) expect(await mallory.ask(message("mallory-hmac"))).toMatchObject(REFUSAL);
  expect(mallory.closed).toBeUndefined();
});
