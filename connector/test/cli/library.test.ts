import { readFile } from "node:fs/promises";
import { expect, test } from "@jest/globals";
import { readKeyFile } from "../../src/cli/library.ts";
import { Connector } from "../../src/connector.ts";
import { RelayError } from "../../src/errors.ts";
import { sharedByAll } from "../fixture.ts";
import { Shell } from "./shell.ts";

const shell = sharedByAll(new Shell());
const URL = "http://127.0.0.1:1";

test("A key file gives all that a connector is made of", async () => {
  await shell.run(["keygen", "--agent", "agent://bob", "--out", "bob.json"]);
  const options = await readKeyFile(shell.file("bob.json"));
  expect(options).toMatchObject({ agent: "agent://bob", key: { alg: "ed25519" }, trust: { issuers: [] } });
  expect(options.sealingKeys).toHaveLength(1);
  expect(() => new Connector({ url: URL, ...options })).not.toThrow();
});

test("What is no key file is refused as the library refuses", async () => {
  const error = await readKeyFile(shell.file("none.json")).catch((error: unknown) => error);
  expect(error).toBeInstanceOf(RelayError);
  expect(error).toMatchObject({ code: "invalid_key" });
});

test.each([
  [{ alg: "ed25519", private_key: "AAAA" }, "has a private_key that is not the 32 bytes"],
  [{ alg: "ed25519", private_key: "no base64url" }, "has a private_key that is not the 32 bytes"],
  [{ alg: "hmac-sha256", secret: "AAAA" }, "has a secret that is not 32 bytes or more"],
])("A key file whose key cannot be used is told by the member of the file: %j", async (key, why) => {
  await shell.write("short.json", { agent_id: "agent://bob", key_id: "bob-1", ...key });
  const error = await readKeyFile(shell.file("short.json")).catch((error: RelayError) => error);
  expect(error).toMatchObject({ code: "invalid_key", message: expect.stringContaining(why) });
  expect((error as RelayError).hint).not.toMatch(/privateKey|browser/);
});

test("The content of a key file is no key, and what is no list no sealingKeys", async () => {
  await shell.run(["keygen", "--agent", "agent://carol", "--out", "carol.json"]);
  const options = await readKeyFile(shell.file("carol.json"));
  const content = JSON.parse(await readFile(shell.file("carol.json"), "utf8"));
  expect(() => new Connector({ url: URL, agent: options.agent, key: content })).toThrow(TypeError);
  expect(() => new Connector({ url: URL, ...options, sealingKeys: "key" as never })).toThrow(/sealingKeys/);
});
