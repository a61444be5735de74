import { readFile } from "node:fs/promises";
import { expect, test } from "@jest/globals";
import { parse } from "yaml";
import { REDIS_USERS } from "../support/deployed-users.ts";

interface ComposeService {
  readonly command?: readonly string[];
  readonly group_add?: readonly string[];
  readonly ports?: readonly string[];
}

const ROOT = new URL("../../", import.meta.url);
const compose = parse(await textOf("docker-compose.yml"), { merge: true });
const services: Record<string, ComposeService> = compose.services;

/** A `name` or `version` at the top is refused by the one and warned of by the other. */
test("the compose file is one for docker-compose 1.29 and Compose v2 alike", async () => {
  const sections = Object.keys(compose).filter((name) => !name.startsWith("x-"));
  expect(sections.sort()).toEqual(["networks", "services", "volumes"]);
});

test("the edge alone can be reached from the host, since the services believe what it says of a client's address", () => {
  const published = Object.entries(services).filter(([, { ports }]) => ports !== undefined);
  expect(published.map(([name]) => name)).toEqual(["edge"]);
});

test("each service reads its own Redis password, out of a group that no other service is in", () => {
  const given = services["redis-passwords"]?.command?.slice(2).map((argument) => argument.split("=")) ?? [];
  expect(given.map(([user]) => user)).toEqual(REDIS_USERS);
  expect(new Set(given.map(([, group]) => group)).size).toBe(REDIS_USERS.length);
  for (const [user = "", group] of given) {
    expect([user, services[user]?.group_add]).toEqual([user, [group]]);
    const files = services[user]?.command?.filter((argument) => argument.startsWith("--env-file=/run/redis-users/"));
    expect([user, files]).toEqual([user, [`--env-file=/run/redis-users/${user}.env`]]);
  }
});

test("no password stands in the compose file, nor is one taken from the environment", async () => {
  expect(await textOf("docker-compose.yml")).not.toMatch(/REDIS_PASSWORD|REDIS_URL|redis:\/\//);
});

test("images carry the version of package.json", async () => {
  const { version } = JSON.parse(await textOf("package.json"));
  expect(await textOf("deploy/docker/Dockerfile")).toContain(`org.opencontainers.image.version="${version}"`);
});

function textOf(file: string): Promise<string> {
  return readFile(new URL(file, ROOT), "utf8");
}
