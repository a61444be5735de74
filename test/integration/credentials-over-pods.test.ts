import { expect, test } from "@jest/globals";
import { type AgentSocket, type Frame, signed } from "../support/agent.ts";
import { type CredentialAgent, registerWith, TestIssuer } from "../support/issuer.ts";
import type { Pod } from "../support/relay.ts";
import { given, useRelay } from "../support/use-relay.ts";

const HOST = "relay.example";
const IN_FORCE_WITHIN_MS = 5000;

const relay = useRelay();
const [acme, globex, initech] = [new TestIssuer("acme"), new TestIssuer("globex"), new TestIssuer("initech")];
const ACME = acme.record(["agent://acme.*"]);
const GLOBEX = globex.record(["agent://globex.*"]);
const INITECH = initech.record(["agent://initech.*"]);

const pods = given(async () => {
  await relay.writeKeys({ issuers: [ACME, GLOBEX, INITECH] });
  const start = () => relay.startWsConnector({ RELAY_PUBLIC_HOSTS: HOST });
  return [await start(), await start(), await start()];
});

interface Live {
  readonly agent: CredentialAgent;
  readonly socket: AgentSocket;
}

/** Agents of an issuer, one at each pod. */
async function atEachPod(issuer: TestIssuer): Promise<Live[]> {
  const register = async (pod: Pod, n: number) => {
    const agent = await issuer.agent(`agent://${issuer.name}.a${n}`);
    const socket = await relay.connect(pod);
    expect(await socket.ask(registerWith(agent, HOST))).toMatchObject({ accepted: true });
    return { agent, socket };
  };
  return await Promise.all([...pods].map(register));
}

async function expectReleased(all: readonly Live[], reason: string): Promise<void> {
  expect(await Promise.all(all.map(({ socket }) => socket.untilClosed(IN_FORCE_WITHIN_MS)))).toEqual([
    4403, 4403, 4403,
  ]);
  for (const { agent, socket } of all) {
    expect(socket.notices("released")).toMatchObject([{ agent_id: agent.id, reason }]);
  }
}

const heartbeat = ({ id, key }: CredentialAgent): Frame => signed(key, { type: "agent.heartbeat", from: id });

test("A revocation and the removal of an issuer end live connections on three pods within 5 s, and no other's", async () => {
  const [revoked, removed, kept] = [await atEachPod(acme), await atEachPod(globex), await atEachPod(initech)];
  const issued_before = new Date(Date.now() + 1000).toISOString();
  await relay.writeKeys({ issuers: [{ ...ACME, revoked: [{ agent: "*", issued_before }] }, INITECH] });
  await Promise.all([expectReleased(revoked, "revoked"), expectReleased(removed, "unknown_issuer")]);
  for (const { agent, socket } of kept) expect(await socket.ask(heartbeat(agent))).toMatchObject({ accepted: true });
});
