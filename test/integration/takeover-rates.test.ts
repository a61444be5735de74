import { expect, test } from "@jest/globals";
import { type AgentSocket, signed } from "../support/agent.ts";
import { type CredentialAgent, registerWith, TestIssuer } from "../support/issuer.ts";
import { until } from "../support/until.ts";
import { given, useRelay } from "../support/use-relay.ts";

/** Of a connection: 20 envelopes a second, 100 at once; of an agent of an issuer, as of a key, 80 and 100. */
const PER_SECOND = 80;
const BURST = 100;
const TAKEOVERS = 3;
const HOST = "relay.example";

const relay = useRelay();
const open = new TestIssuer("open");
const eve = given(async () => {
  await relay.writeKeys({ ...relay.keys.file, issuers: [open.record(["agent://open.*"])] });
  return await open.agent("agent://open.eve");
});
const pod = given(() => relay.startWsConnector({ RELAY_ENVELOPES_PER_SECOND: "20", RELAY_PUBLIC_HOSTS: HOST }));

async function takeOver(agent: CredentialAgent): Promise<AgentSocket> {
  const socket = await relay.connect(pod);
  expect(await socket.ask(registerWith(agent, HOST))).toMatchObject({ accepted: true });
  return socket;
}

test("An agent of an issuer that takes itself over again and again sends no faster than a key may", async () => {
  const begun = performance.now();
  for (let n = 0; n < TAKEOVERS; n += 1) {
    const socket = await takeOver(eve);
    const before = socket.frames.length;
    for (let k = 0; k < BURST; k += 1) socket.send(signed(eve.key, { type: "agent.heartbeat", from: eve.id }));
    await until("its burst is answered", () => socket.frames.length >= before + BURST);
  }
  const seconds = (performance.now() - begun) / 1000;
  expect((TAKEOVERS - 1) * BURST).toBeLessThan(seconds * PER_SECOND * 1.1);
}, 60_000);
