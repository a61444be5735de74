import { beforeAll, describe, expect, test } from "@jest/globals";
import { Machine } from "../packages/npm.ts";
import { use } from "../support/use-relay.ts";
import { installedSample } from "./sample-project.ts";

const machine = use(new Machine());
let project: string;
beforeAll(async () => {
  project = await installedSample(machine);
}, 120_000);

describe("A project that tests its agent on the packages that a relay hands out, with no registry in reach,", () => {
  test("compiles, strictly, their types included", async () => {
    expect(await machine.shell("node node_modules/typescript/bin/tsc", project)).toMatchObject({ code: 0, stdout: "" });
  });

  test("passes its test on a relay of its own", async () => {
    const { code, stdout } = await machine.shell("npm test", project);
    expect([code, /^# pass 2$|^ℹ pass 2$/m.test(stdout)]).toEqual([0, true]);
  });
});
