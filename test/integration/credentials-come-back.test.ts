import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { resetWindow } from "window/reset.ts";
import type { AgentSocket } from "../support/agent.ts";
import { HttpClient } from "../support/http.ts";
import { type CredentialAgent, registerWith, TestIssuer } from "../support/issuer.ts";
import { until } from "../support/until.ts";
import { given, useRelay } from "../support/use-relay.ts";

/** Agents that send no heartbeat, register no more and renew nothing: what is known of them is their pod's doing. */
const HOST = "relay.example";
const NAME = "acme.bob";
const relay = useRelay();
const http = new HttpClient();
const acme = new TestIssuer("acme");
const pod = given(async () => {
  await relay.writeKeys({ issuers: [acme.record(["agent://acme.*"])] });
  return await relay.startWsConnector({ RELAY_PUBLIC_HOSTS: HOST });
});
const gateway = given(() => relay.startGateway());
const view = given(() => relay.view());
const link = given(() => relay.link("window-reset"));
let socket: AgentSocket;

beforeEach(async () => {
  socket = await relay.connect(pod);
});
afterEach(() => socket.close());

const LOSSES: readonly (readonly [string, () => Promise<unknown>])[] = [
  ["Redis was emptied", () => view.empty()],
  ["Redis died and came back", () => relay.loseWindow()],
  ["a window was opened", () => resetWindow(link, { partitions: relay.partitions, deployId: "local", force: true })],
];

test.each(LOSSES)("after %s, agents are verifiable as soon as they are present", async (_, lose) => {
  const bob = await acme.agent(`agent://${NAME}`);
  await register(bob);
  await lose();
  await until("bob is present", () => view.isConnected(NAME));
  expect(await lookUp()).toEqual({ credential: bob.credential, status: 200 });
});

test("of an agent that renewed its credential and changed its key, each is found as it was last", async () => {
  const first = await acme.agent(`agent://${NAME}`);
  const renewed = await acme.renewed(first, { nbf: 1 });
  const other = await acme.agent(`agent://${NAME}`);
  for (const agent of [first, renewed, other]) await register(agent);
  await view.empty();
  await until("bob is present", () => view.isConnected(NAME));
  expect(await lookUp()).toEqual({ credential: other.credential, status: 200 });
  for (const { key, credential } of [renewed, other]) {
    expect(await lookUp(`?key_id=${key.keyId}`)).toEqual({ credential, status: 200 });
  }
});

async function register(agent: CredentialAgent): Promise<void> {
  expect(await socket.ask(registerWith(agent, HOST))).toMatchObject({ accepted: true });
}

/** The gateway's own connection may come back after the pod's: it says `unavailable` until then, and `unknown` never. */
async function lookUp(query = ""): Promise<object> {
  const ask = () => http.get(`${gateway.url}/v1/agents/${NAME}/credential${query}`);
  let answer = await ask();
  await until("the gateway reaches Redis", async () => {
    if (answer.status === 503) answer = await ask();
    return answer.status !== 503;
  });
  return { status: answer.status, credential: answer.body.credential };
}
