import { readFile } from "node:fs/promises";
import { expect, test } from "@jest/globals";
import { partsOf, SABOTAGES, type Sabotage } from "./sabotages.ts";

const REPOSITORY = new URL("../../../", import.meta.url);

test("What is to be sabotaged is there, and so are the tests that must notice", async () => {
  for (const sabotage of SABOTAGES) {
    await expect(isThere(sabotage)).resolves.toEqual([sabotage.without, true]);
    for (const path of sabotage.tests) await readFile(new URL(path, REPOSITORY));
  }
});

async function isThere(sabotage: Sabotage): Promise<[string, boolean]> {
  const [module, target] = partsOf(sabotage);
  const source = await readFile(new URL(module, REPOSITORY), "utf8");
  const [name = "", ...members] = target?.split(".") ?? [];
  if (!module.endsWith(".ts")) {
    const isDefined = (part: string) =>
      new RegExp(`^(local function|class| *(async )?def) ${part}\\b`, "m").test(source);
    return [sabotage.without, target === undefined || [name, ...members].every(isDefined)];
  }
  const exports: Record<string, unknown> = await import(new URL(module, REPOSITORY).href);
  if (target === undefined) return [sabotage.without, true];
  const found = members.reduce((value, member) => (value as Record<string, unknown>)[member], exports[name]);
  return [sabotage.without, typeof found === "function"];
}
