import { chown, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import { temporaryFolder } from "../../../test/support/temporary-folder.ts";
import { mcpToken } from "../../src/cli/mcp-token.ts";
import type { Reporter } from "../../src/cli/reporter.ts";

const OWN = process.getuid?.() as number;
const IS_ROOT = OWN === 0;

async function tokenFor(user: number, owner = OWN): Promise<string> {
  await using folder = await temporaryFolder();
  const file = join(folder.path, "token");
  await writeFile(file, "t".repeat(40), { mode: 0o600 });
  // Only root can give a file away.
  if (owner !== OWN) await chown(file, owner, owner);
  return (await mcpToken(file, {}, {} as Reporter, user)).token;
}

describe("The token of a file", () => {
  test("is taken from one's own, and from root's", async () => {
    expect(await tokenFor(OWN)).toHaveLength(40);
    if (IS_ROOT) expect(await tokenFor(1000)).toHaveLength(40);
  });

  test("is not taken from another user's, who knows it", async () => {
    const [user, owner] = IS_ROOT ? [OWN, 1000] : [OWN + 1, OWN];
    await expect(tokenFor(user, owner)).rejects.toMatchObject({ code: "usage" });
  });
});
