import { readFile } from "node:fs/promises";
import { describe, expect, test } from "@jest/globals";
import { parse } from "yaml";
import { REDIS_USERS } from "../support/deployed-users.ts";

interface ComposeService {
  readonly command?: readonly string[];
  readonly group_add?: readonly string[];
  readonly ports?: readonly string[];
  readonly profiles?: readonly string[];
  readonly environment?: Readonly<Record<string, unknown>>;
  readonly depends_on?: Readonly<Record<string, unknown>>;
}

const ROOT = new URL("../../", import.meta.url);
const compose = parse(await textOf("docker-compose.yml"), { merge: true });
const services: Record<string, ComposeService> = compose.services;
const cluster = parse(await textOf("docker-compose.cluster.yml"), { merge: true });

/** A `name` or `version` at the top is refused by the one and warned of by the other. */
test("the compose file is one for docker-compose 1.29 and Compose v2 alike", async () => {
  const sections = Object.keys(compose).filter((name) => !name.startsWith("x-"));
  expect(sections.sort()).toEqual(["networks", "services", "volumes"]);
});

test("the edge alone can be reached from the host, since the services believe what it says of a client's address", () => {
  const published = Object.entries(services).filter(([, { ports }]) => ports !== undefined);
  expect(published.map(([name, { profiles }]) => [name, profiles])).toEqual([
    ["edge", undefined],
    ["prometheus", ["watch"]],
    ["grafana", ["watch"]],
  ]);
  for (const port of published.flatMap(([, { ports }]) => ports)) expect(port).toMatch(/^127\.0\.0\.1:/);
});

test("what watches the relay is started by its profile alone, and nothing waits for it", () => {
  const watching = Object.entries(services).filter(([, { profiles }]) => profiles !== undefined);
  expect(watching.map(([name]) => name)).toEqual(["prometheus", "grafana"]);
  const awaited = Object.values(services).flatMap(({ depends_on = {} }) => Object.keys(depends_on));
  expect(awaited).not.toEqual(expect.arrayContaining(["prometheus"]));
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

describe("docker-compose.cluster.yml", () => {
  const own: Record<string, ComposeService> = cluster.services;
  const nodes = Object.entries(own).filter(([, { environment }]) => environment?.REDIS_CLUSTER_HOSTNAME !== undefined);

  test("has six nodes, which have the names of their services, and of which every service is told", () => {
    expect(nodes).toHaveLength(6);
    for (const [name, { environment }] of nodes) expect(environment?.REDIS_CLUSTER_HOSTNAME).toBe(name);
    const told = own["redis-passwords"]?.environment?.REDIS_NODES;
    expect(told).toBe(nodes.map(([name]) => `${name}:6379`).join(","));
  });

  test("runs each further node as docker-compose.yml runs its Redis", () => {
    const { environment: _, ...redis } = services.redis as ComposeService;
    for (const [name, { environment: __, ...node }] of nodes.filter(([name]) => name !== "redis")) {
      expect([name, node]).toEqual([name, redis]);
    }
  });

  test("gives the services and the window the same partitions, and opens no window before there is a cluster", () => {
    const users = REDIS_USERS.map((user) => own[user]?.environment?.RELAY_PARTITIONS);
    expect(new Set(users).size).toBe(1);
    expect(users[0]).toMatch(/^\$\{RELAY_PARTITIONS:-12\}$/);
    expect(Object.keys(own["window-reset"]?.depends_on ?? {})).toEqual(["redis-cluster"]);
    expect(Object.keys(own["redis-cluster"]?.depends_on ?? {})).toEqual(nodes.map(([name]) => name));
  });

  test("gives the passwords of docker-compose.yml and two more, and lets nothing be reached from the host", () => {
    const given = (file: Record<string, ComposeService>) => file["redis-passwords"]?.command?.slice(2) ?? [];
    expect(given(own)).toEqual([...given(services), "cluster-create=2005", "replica=999"]);
    expect(own["redis-cluster"]?.group_add).toEqual(["2005"]);
    expect(Object.values(own).flatMap(({ ports }) => ports ?? [])).toEqual([]);
  });
});

function textOf(file: string): Promise<string> {
  return readFile(new URL(file, ROOT), "utf8");
}
