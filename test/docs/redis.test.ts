import { readFile } from "node:fs/promises";
import { describe, expect, test } from "@jest/globals";
import { controlKeys, partitionKeys } from "relay-window/redis/keys.ts";
import { accessTo, KEY_OF_KIND, readUsersAcl, WINDOW_KEYS } from "../support/deployed-users.ts";
import { rowsBetween } from "../support/documents.ts";

const document = await readFile(new URL("../../docs/redis.md", import.meta.url), "utf8");

/** The part of a name that tells it from others: `relay:{0qx}:seen:7` is `seen`. */
function kindOf(name: string): string {
  return name.replace(/^relay:\{\w+\}:/, "").split(":")[0] as string;
}

describe("docs/redis.md", () => {
  test("names every key and channel that the relay uses", () => {
    const names = [
      ...Object.values(partitionKeys).map((make) => (make as (p: number, rest: string) => string)(0, "7")),
      ...Object.values(controlKeys),
      ...WINDOW_KEYS,
    ];
    for (const name of names) expect(document).toContain(`:${kindOf(name)}`);
  });

  test("tells of every user what it may write and what only read", async () => {
    const users = (await readUsersAcl()).filter(({ name }) => name !== "default");
    const kindsIn = (cell = "") => [...cell.matchAll(/`([a-z-]+)`/g)].map(([, kind]) => kind).sort();
    const told = rowsBetween(document, "users").map(([name, writes, reads]) => [name, kindsIn(writes), kindsIn(reads)]);
    const expected = users.map(({ name, rules }) => {
      const access = [...KEY_OF_KIND].map(([kind, key]) => ({ kind, ...accessTo(rules, key) }));
      const kinds = (isMeant: (a: (typeof access)[number]) => boolean) =>
        access.filter(isMeant).map(({ kind }) => kind);
      return [
        `\`${name}\``,
        kinds(({ writes }) => writes).sort(),
        kinds(({ reads, writes }) => reads && !writes).sort(),
      ];
    });
    expect(told).toEqual(expected);
  });
});
