import { readFile } from "node:fs/promises";
import { expect, test } from "@jest/globals";
import { parse } from "yaml";

const ROOT = new URL("../../", import.meta.url);

/** A `name` or `version` at the top is refused by the one and warned of by the other. */
test("the compose file is one for docker-compose 1.29 and Compose v2 alike", async () => {
  const compose = parse(await textOf("docker-compose.yml"), { merge: true });
  const sections = Object.keys(compose).filter((name) => !name.startsWith("x-"));
  expect(sections.sort()).toEqual(["networks", "services"]);
});

test("images carry the version of package.json", async () => {
  const { version } = JSON.parse(await textOf("package.json"));
  expect(await textOf("deploy/docker/Dockerfile")).toContain(`org.opencontainers.image.version="${version}"`);
});

function textOf(file: string): Promise<string> {
  return readFile(new URL(file, ROOT), "utf8");
}
