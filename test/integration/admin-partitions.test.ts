import { expect, test } from "@jest/globals";
import { makeEd25519Key } from "../../deploy/keys/make.ts";
import { AdminClient } from "../support/admin.ts";
import { ed25519Key, type Frame, signed } from "../support/agent.ts";
import { until } from "../support/until.ts";
import { given, useRelay } from "../support/use-relay.ts";

/** The admin listener over several partitions: what it tells is of all of them, and whom it disconnects lies in any. */

const PARTITIONS = 4;
const COUNT = 12;
const relay = useRelay();
const team = makeEd25519Key({ id: "team-1", agents: ["agent://team.*"] });
const key = ed25519Key("team-1", team.privateKey);
const admin = given(async () => {
  await relay.writeKeys({ signing_keys: [team.record] });
  return await AdminClient.make(`${relay.keysFile}.admin`);
});
const pods = given(async () => {
  const settings = { RELAY_PARTITIONS: String(PARTITIONS) };
  return [
    await relay.startWsConnector({ ...settings, ...admin.settings }),
    await relay.startWsConnector(settings),
  ] as const;
});
const view = given(() => relay.view(PARTITIONS));
const names = Array.from({ length: COUNT }, (_, n) => `team.a${n}`);
const sockets = given(
  async () =>
    new Map(
      await Promise.all(
        names.map(async (name, n) => {
          const socket = await relay.connect(pods[n % 2 === 0 ? 0 : 1]);
          const register = signed(key, { type: "agent.register", from: `agent://${name}` });
          expect(await socket.ask(register)).toMatchObject({ accepted: true });
          return [name, socket] as const;
        }),
      ),
    ),
);

test("counts and the agents of a key are those of all partitions", async () => {
  expect(new Set(names.map((name) => view.partition(name))).size).toBe(PARTITIONS);
  expect(sockets.size).toBe(COUNT);
  const { body } = await admin.get("/admin/counts");
  expect(body).toMatchObject({ agents: { online: COUNT }, pod: { agents: COUNT / 2 } });
  const { body: listed } = await admin.get("/admin/agents?key=team-1");
  expect([listed.total, listed.truncated, listed.complete]).toEqual([COUNT, false, true]);
  expect(new Set(listed.agents.map(({ agent }: Frame) => agent))).toEqual(
    new Set(names.map((name) => `agent://${name}`)),
  );
});

test("an agent is disconnected whichever partition it lies in, and each is alone in it", async () => {
  for (const [n, name] of names.entries()) {
    expect(await admin.disconnect(`agent://${name}`)).toMatchObject({ status: 200 });
    expect(await sockets.get(name)?.untilClosed()).toBe(1001);
    await until(`${name} is gone`, async () => !(await view.isConnected(name)));
    const open = names.filter((other) => sockets.get(other)?.closed === undefined);
    expect(open).toEqual(names.slice(n + 1));
  }
});
