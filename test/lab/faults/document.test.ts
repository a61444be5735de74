import { readFile } from "node:fs/promises";
import { expect, test } from "@jest/globals";
import { rowsBetween } from "../../support/documents.ts";
import { CLUSTER_FAULTS, FAULTS } from "./catalogue.ts";

test.each([
  ["faults", FAULTS],
  ["cluster-faults", CLUSTER_FAULTS],
])("docs/reliability.md has a line for each of the %s, and no promise was broken", async (part, faults) => {
  const document = await readFile(new URL("../../../docs/reliability.md", import.meta.url), "utf8");
  const rows = rowsBetween(document, part);
  expect(rows.map(([name]) => name)).toEqual(faults.map(({ name }) => name));
  expect(rows.map((cells) => cells[7])).toEqual(faults.map(() => "0"));
});
