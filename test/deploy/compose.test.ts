import { readFile } from "node:fs/promises";
import { describe, expect, test } from "@jest/globals";
import { parse, parseAllDocuments } from "yaml";
import { REDIS_USERS } from "../support/deployed-users.ts";
import { rowsBetween } from "../support/documents.ts";

interface ComposeService {
  readonly command?: readonly string[];
  readonly group_add?: readonly string[];
  readonly ports?: readonly string[];
  readonly profiles?: readonly string[];
  readonly environment?: Readonly<Record<string, unknown>>;
  readonly depends_on?: Readonly<Record<string, unknown>>;
  readonly mem_limit?: string;
  readonly cpu_quota?: number;
  readonly pids_limit?: number;
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

describe("the limits of containers", () => {
  const all = Object.entries({ ...cluster.services, ...services } as Record<string, ComposeService>);

  test("bound memory, cores and processes of every container, and no one-shot takes more than another", () => {
    const bounded = all.map(([name, { mem_limit, cpu_quota, pids_limit }]) => [
      name,
      mem_limit !== undefined && cpu_quota !== undefined && pids_limit !== undefined,
    ]);
    expect(bounded).toEqual(all.map(([name]) => [name, true]));
    const oneShots = ["redis-passwords", "keys", "window-reset", "redis-cluster"];
    const limits = all.filter(([name]) => oneShots.includes(name)).map(([, service]) => shown(limitsOf(service)));
    expect([limits.length, new Set(limits).size]).toEqual([oneShots.length, 1]);
  });

  test.each([
    ["gateway", "base/gateway.yaml", "service"],
    ["ws-connector", "base/ws-connector.yaml", "service"],
    ["ops-reporting", "base/ops-reporting.yaml", "service"],
    ["redis", "base/redis.yaml", "redis"],
    ["window-reset", "base/gateway.yaml", "window-reset"],
    ["redis-cluster", "overlays/cluster-local/create-cluster.yaml", "create"],
    ["edge", "components/envoy-gateway/envoy-proxy.yaml", undefined],
  ])("%s may take as much as in Kubernetes, and as docs/operations.md says", async (name, manifest, container) => {
    const limits = limitsOf(all.find(([other]) => other === name)?.[1] as ComposeService);
    expect(shown(limits)).toBe(shown(await limitsIn(manifest, container)));
    const rows = rowsBetween(await textOf("docs/operations.md"), "limits of containers");
    const row = rows.find(([containers = ""]) => containers.includes(`\`${name}\``));
    expect(row?.slice(1, 3)).toEqual(shown(limits).split(", "));
  });
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

interface Limits {
  readonly mib: number;
  readonly cores: number;
}

/** A variable stands for its default. */
function limitsOf({ mem_limit = "", cpu_quota = 0 }: ComposeService): Limits {
  const [, amount, unit = ""] = /(\d+)([mg])\}?$/.exec(mem_limit) ?? [];
  return { mib: Number(amount) * (unit === "g" ? 1024 : 1), cores: cpu_quota / 100_000 };
}

/** Of a container of a manifest; without a name the first that the file bounds. */
async function limitsIn(manifest: string, container?: string): Promise<Limits> {
  const objects = parseAllDocuments(await textOf(`deploy/kubernetes/${manifest}`), { merge: true });
  const found = objects.map((object) => boundedIn(object.toJS(), container)).find((limits) => limits !== undefined);
  const [, amount, unit] = /^(\d+)([MG])i$/.exec(found?.memory ?? "") ?? [];
  return { mib: Number(amount) * (unit === "G" ? 1024 : 1), cores: Number(found?.cpu) };
}

function boundedIn(value: unknown, name?: string): { readonly cpu: string; readonly memory: string } | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { resources, name: own } = value as { resources?: { limits: { cpu: string; memory: string } }; name?: string };
  if (resources !== undefined && own === name) return resources.limits;
  for (const member of Object.values(value)) {
    const found = boundedIn(member, name);
    if (found !== undefined) return found;
  }
  return undefined;
}

function shown({ mib, cores }: Limits): string {
  return `${mib % 1024 === 0 ? `${mib / 1024} GiB` : `${mib} MiB`}, ${cores}`;
}

function textOf(file: string): Promise<string> {
  return readFile(new URL(file, ROOT), "utf8");
}
