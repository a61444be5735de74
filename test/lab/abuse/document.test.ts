import { readFile } from "node:fs/promises";
import { expect, test } from "@jest/globals";
import { rowsBetween } from "../../support/documents.ts";
import { ATTACKS } from "./catalogue.ts";

test("docs/security.md lists every attack that is launched, with what the relay does about it", async () => {
  const document = await readFile(new URL("../../../docs/security.md", import.meta.url), "utf8");
  const rows = rowsBetween(document, "abuse");
  expect(rows.map(([name, stoppedBy]) => [name, stoppedBy])).toEqual(
    ATTACKS.map(({ name, stoppedBy }) => [name, stoppedBy]),
  );
});
