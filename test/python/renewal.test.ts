import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import {
  ACME,
  GLOBEX,
  IssuerStage,
  type Party,
  party,
  secondsFromNow,
} from "../../connector/test/credentials/parties.ts";
import { record } from "../../connector/test/kit.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";
import { withPython } from "./python-connector.ts";

const WITHIN_MS = 20_000;
const { stage, python } = withPython(new IssuerStage());

/** Writes a key file whole, so that nobody reads half of it. */
async function writeKeyFile(file: string, { agent, key, sealingKeys }: Party, credential: string): Promise<void> {
  const { privateKey: private_key } = key as { privateKey: string };
  const record = { agent_id: agent, alg: "ed25519", private_key, credential, trusted_issuers: [ACME, GLOBEX] };
  await writeFile(`${file}.new`, JSON.stringify({ ...record, sealing_key: sealingKeys[0]?.privateKey }));
  await rename(`${file}.new`, file);
}

const registers = () => stage.front.sent.filter(({ type }) => type === "agent.register");

test("A key file with other keys is taken over: what has no answer goes out again under the old one, never signed anew", async () => {
  const [before, after] = [await party("agent://globex.bob"), await party("agent://globex.bob")];
  await using folder = await temporaryFolder();
  const file = join(folder.path, "bob.json");
  // Its renewal is due: the file is read again and again until it has another.
  await writeKeyFile(file, before, await before.token({ iat: secondsFromNow(-6000), exp: secondsFromNow(600) }));
  await python.online("bob", { url: stage.front.url, key_file: file });
  const ann = await stage.join(await party("agent://acme.ann"), stage.url, { trust: { issuers: [ACME, GLOBEX] } });
  const { deliveries } = record(ann);
  const [{ key_id: oldKey }] = registers() as [{ key_id: string }];

  stage.front.toAgent = (frame) => (frame.target_delivery === undefined ? frame : undefined);
  const first = python.call("bob", "send", [ann.agent, { n: 0 }]);
  await until("it is delivered", () => deliveries.length > 0);
  await writeKeyFile(file, after, await after.token());
  const isNew = ({ key_id }: { key_id: string }) => key_id !== oldKey;
  await until("it has registered with the new key", () => registers().some(isNew as never), WITHIN_MS);
  const sent = stage.front.sent.length;
  stage.front.cut();
  stage.front.toAgent = (frame) => frame;
  await python.tells("the loss", ({ state }) => state === "reconnecting");
  const second = python.call("bob", "send", [ann.agent, { n: 1 }]);
  expect([(await first).duplicate, (await second).duplicate]).toEqual([true, false]);
  const types = stage.front.sent.slice(sent).map(({ type, key_id }) => [type, key_id === oldKey ? "old" : "new"]);
  expect(types).toEqual([
    ["agent.register", "old"],
    ["agent.register", "new"],
    ["message.send", "old"],
    ["message.send", "new"],
  ]);
  await until("both are delivered", () => deliveries.length === 2);
  expect(deliveries.map(({ payload, verified }) => [payload.n, verified])).toEqual([
    [0, "agent"],
    [1, "agent"],
  ]);

  await ann.send(before.agent, { n: 2 }, { seal: true });
  const { delivery } = await python.tells("what is sealed to the new key", (told) => told.delivery?.payload.n === 2);
  expect(delivery).toMatchObject({ sealed: true, verified: "agent" });
}, 60_000);
