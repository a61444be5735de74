import { readFile, writeFile } from "node:fs/promises";
import { describe, expect, test } from "@jest/globals";
import { newOkpKey } from "../../deploy/keys/okp-key.ts";
import { keysCommand } from "./commands.ts";
import { useIssuers } from "./issuers-kit.ts";

const issuers = useIssuers();
const { keys, inFolder, stored, theIssuer } = issuers;

describe("npm run keys, of an organisation's issuer", () => {
  const X = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
  const record = (agents: string[], publicKey = X) =>
    JSON.stringify({ issuer: "globex", keys: [{ public_key: publicKey }], agents });

  test("admits it from its public record, and removes it", async () => {
    expect(await keysCommand(issuers.keysFile(), ["add-issuer"], record(["agent://globex.*"]))).toMatchObject({
      code: 0,
      stdout: "",
    });
    expect(await theIssuer()).toMatchObject({ issuer: "globex", agents: ["agent://globex.*"] });
    expect(await keys("remove-issuer", "globex")).toMatchObject({ code: 0 });
    expect((await stored()).issuers).toEqual([]);
    expect(await keys("remove-issuer", "globex")).toMatchObject({ code: 1 });
  });

  test("keeps what it revoked while it is removed, and has it in force once it is admitted again", async () => {
    await keysCommand(issuers.keysFile(), ["add-issuer"], record(["agent://globex.*"]));
    await keys("revoke", "--agent", "agent://globex.bob", "--issued-before", "now");
    const revoked = (await theIssuer())?.revoked;
    const at = revoked?.[0]?.issued_before as string;
    await keys("remove-issuer", "globex");
    expect((await stored()).issuers).toEqual([]);
    expect((await keys("list")).stdout).toContain(at);
    await keysCommand(issuers.keysFile(), ["add-issuer"], record(["agent://globex.*"]));
    expect(await stored()).toMatchObject({ issuers: [{ issuer: "globex", revoked }] });
    expect((await stored()).removed_issuers).toBeUndefined();
  });

  test("is not admitted by a file in which its revocations stand apart", async () => {
    const revoked = [{ agent: "*", issued_before: new Date().toISOString() }];
    const readmitted = { issuers: [JSON.parse(record(["*"]))], removed_issuers: [{ issuer: "globex", revoked }] };
    await writeFile(issuers.keysFile(), JSON.stringify(readmitted));
    expect(await keys("list")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("removed_issuers.0.issuer"),
    });
  });

  test("lets the operator say for whom it speaks: no record takes all agents, none changes them later", async () => {
    await writeFile(inFolder("first.json"), record(["*"]));
    expect(await keys("add-issuer", inFolder("first.json"))).toMatchObject({ code: 1 });
    const narrowed = await keys("add-issuer", inFolder("first.json"), "--agents", "agent://globex.*");
    expect(narrowed).toMatchObject({ code: 0 });
    await writeFile(inFolder("next.json"), record(["*"], newOkpKey("Ed25519").publicJwk.x));
    expect(await keys("add-issuer", inFolder("next.json"))).toMatchObject({ code: 0 });
    expect(await theIssuer()).toMatchObject({ agents: ["agent://globex.*"], keys: [{ public_key: X }, {}] });
    expect(await keys("add-issuer", inFolder("next.json"))).toMatchObject({ code: 1 });
  });

  test("refuses a file that holds the private key, and keeps nothing of it", async () => {
    await keys("new-issuer", "--issuer", "own", "--agents", "*");
    const before = await readFile(issuers.keysFile(), "utf8");
    expect(await keys("add-issuer", inFolder("issuer.json"))).toMatchObject({ code: 1, stdout: "" });
    expect(await readFile(issuers.keysFile(), "utf8")).toBe(before);
  });
});
