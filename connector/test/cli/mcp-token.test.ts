import { chmod, chown, link, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import { markedUtf8, UTF_16 } from "../../../test/support/encoded.ts";
import { temporaryFolder } from "../../../test/support/temporary-folder.ts";
import { mcpToken } from "../../src/cli/mcp-token.ts";

const OWN = process.getuid?.() as number;
const IS_ROOT = OWN === 0;
const TOKEN = "t".repeat(40);

/** @param change what another user did to the file, or made in its place; gives the file that is named then. */
async function tokenOf(change: (file: string) => Promise<string>, user = OWN): Promise<string> {
  await using folder = await temporaryFolder();
  const file = join(folder.path, "token");
  await writeFile(file, TOKEN, { mode: 0o600 });
  return (await mcpToken(await change(file), {}, user)).token;
}

/** Only root can give a file away. */
async function given(file: string, owner: number): Promise<string> {
  if (owner !== OWN) await chown(file, owner, owner);
  return file;
}

describe("The token of a file", () => {
  test("is taken from one's own, root's from root's", async () => {
    expect(await tokenOf(async (file) => file)).toBe(TOKEN);
  });

  const encoding = (encoded: (text: string) => Buffer) => async (file: string) => {
    await writeFile(file, encoded(`${TOKEN}\n`));
    return file;
  };

  test("may have a byte order mark and the line end of Windows", async () => {
    expect(await tokenOf(encoding(markedUtf8))).toBe(TOKEN);
  });

  test.each(UTF_16)("is not taken from a file in %s, which is named", async (_, encoded) => {
    const refused = { code: "usage", message: expect.stringMatching(/token is UTF-16\.$/) };
    await expect(tokenOf(encoding(encoded))).rejects.toMatchObject(refused);
  });

  test("is not taken from another user's, who knows it, though that is root", async () => {
    const [user, owner] = IS_ROOT ? [OWN, 1000] : [OWN + 1, OWN];
    await expect(tokenOf((file) => given(file, owner), user)).rejects.toMatchObject({ code: "usage" });
    await expect(tokenOf((file) => given(file, OWN), 1000)).rejects.toMatchObject({ code: "usage" });
  });

  test.each([
    ["a link to one's own", /is a link/, (file: string) => symlink(file, `${file}.named`)],
    ["a further name of one's own", /several links/, (file: string) => link(file, `${file}.named`)],
  ])("is not taken from %s, whose maker may know what it has", async (_, message, make) => {
    const named = async (file: string) => {
      await make(file);
      return `${file}.named`;
    };
    await expect(tokenOf(named)).rejects.toMatchObject({ code: "usage", message: expect.stringMatching(message) });
  });

  test("is not taken from what is no file", async () => {
    const refused = { code: "usage", message: expect.stringContaining("no regular file") };
    await expect(tokenOf(async (file) => join(file, ".."))).rejects.toMatchObject(refused);
  });

  test.each([0o640, 0o604, 0o620])(
    "is not taken from one that others can use, which is told how to mend (%s)",
    async (mode) => {
      const shared = async (file: string) => {
        await chmod(file, mode);
        return file;
      };
      await expect(tokenOf(shared)).rejects.toMatchObject({
        code: "usage",
        hint: expect.stringContaining("chmod 600"),
      });
    },
  );
});
