import { readdir, readFile } from "node:fs/promises";
import { partitionKeys, windowKeys } from "@agent-relay/shared/window/keys.ts";
import { describe, expect, test } from "@jest/globals";

const document = await readFile(new URL("../../docs/redis.md", import.meta.url), "utf8");

/** The part of a name that tells it from others: `relay:{0}:seen:7` is `seen`. */
function kindOf(name: string): string {
  return name.replace(/^relay:(?:\{\d+\}:)?/, "").split(":")[0] as string;
}

describe("docs/redis.md", () => {
  test("names every key and channel that the relay uses", () => {
    const names = [
      ...Object.values(partitionKeys).map((make) => (make as (p: number, rest: string) => string)(0, "7")),
      ...Object.values(windowKeys).map((key) => (typeof key === "string" ? key : key("digest"))),
    ];
    for (const name of names) expect(document).toContain(`:${kindOf(name)}`);
  });

  test("names only Lua functions that exist", async () => {
    const files = await readdir(new URL("../../shared/src/window/lua", import.meta.url));
    const named = [...document.matchAll(/`([a-z_]+\.lua)`/g)].map(([, name]) => name);
    expect(named.length).toBeGreaterThan(1);
    for (const name of named) expect(files).toContain(name);
  });
});
