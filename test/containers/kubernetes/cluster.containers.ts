import { readFile } from "node:fs/promises";
import { describe, expect, test } from "@jest/globals";
import type { IContainer } from "kubernetes-models/v1";
import { settingsReader } from "relay-runtime/settings.ts";
import { codeBlock } from "../../support/documents.ts";
import { environmentOf } from "./environment.ts";
import {
  containersOf,
  mainContainer,
  named,
  ofKind,
  outsideSecrets,
  podOf,
  render,
  SERVICES,
  selects,
} from "./manifests.ts";

const CLUSTERS = ["cluster", "cluster-local"] as const;
const overlays = await Promise.all(CLUSTERS.map(async (overlay) => ({ overlay, objects: await render(overlay) })));
const local = await render("cluster-local");
const nodes = named(local, "StatefulSet", "redis");
const job = named(local, "Job", "redis-cluster-create");
const [node] = podOf(nodes).spec.containers as [IContainer];

/** Nodes that a container's REDIS_URL names; checked as a service checks it. */
function nodesOf(objects: Parameters<typeof environmentOf>[0], container: IContainer) {
  const { redisUrl } = settingsReader("REDIS_URL")(environmentOf(objects, container));
  const [, user, hosts = ""] = /^redis-cluster:\/\/([\w-]+):[\w-]+@(.*)$/.exec(redisUrl) ?? [];
  return { user, hosts: hosts.split(",") };
}

describe.each(overlays)("The $overlay overlay", ({ objects }) => {
  test("has the three services and no single Redis", () => {
    expect(ofKind(objects, "Deployment").map(({ metadata }) => metadata?.name)).toEqual([...SERVICES].sort());
    expect(ofKind(objects, "Service").map(({ metadata }) => metadata?.name)).not.toContain("redis");
  });

  test("gives each service the addresses of the overlay, with its own user, and 12 partitions", () => {
    const given = ofKind(objects, "ConfigMap").find(({ data }) => data?.nodes !== undefined)?.data?.nodes ?? "";
    const users = ofKind(objects, "Deployment")
      .flatMap(containersOf)
      .map((container) => {
        expect(environmentOf(objects, container).RELAY_PARTITIONS).toBe("12");
        const { user, hosts } = nodesOf(objects, container);
        expect(hosts).toEqual(given.split(","));
        return user;
      });
    expect(users.sort()).toEqual([...SERVICES, "window-reset"].sort());
  });

  test("lets services reach Redis", () => {
    const egress = ofKind(objects, "NetworkPolicy")
      .filter(({ spec }) => selects(spec?.podSelector?.matchLabels, { "app.kubernetes.io/component": "service" }))
      .flatMap(({ spec }) => spec?.egress ?? []);
    expect(egress.flatMap(({ ports }) => ports?.map(({ port }) => port) ?? [])).toContain(6379);
  });
});

describe("The nodes of the cluster-local overlay", () => {
  test("are six, under the names that everybody is given", () => {
    const names = Array.from({ length: nodes.spec?.replicas ?? 0 }, (_, n) => `redis-${n}`);
    expect(names).toHaveLength(6);
    const service = named(local, "Service", nodes.spec?.serviceName ?? "");
    expect(service.spec).toMatchObject({ clusterIP: "None", publishNotReadyAddresses: true });
    expect(selects(service.spec?.selector, podOf(nodes).labels)).toBe(true);
    const hosts = names.map((name) => `${name}.${nodes.spec?.serviceName}`);
    expect(nodesOf(local, mainContainer(job)).hosts).toEqual(hosts.map((host) => `${host}:6379`));
    const announced = node.env?.find(({ name }) => name === "REDIS_CLUSTER_HOSTNAME")?.value;
    expect(announced).toBe(`$(POD_NAME).${nodes.spec?.serviceName}`);
  });

  test("start Redis by its script, with the passwords of all users, of which the Job has its own alone", () => {
    const config = podOf(nodes).spec.volumes?.find(({ name }) => name === "config")?.configMap?.name ?? "";
    const files = named(local, "ConfigMap", config).data ?? {};
    expect(Object.keys(files)).toEqual(expect.arrayContaining(["start.sh", "cluster.conf", "redis.conf"]));
    const asked = ["users.acl", "cluster-users.acl"].flatMap((file) =>
      Array.from((files[file] ?? "").matchAll(/^user (\S+) on #(\w+)/gm), ([, user, variable]) => [variable, user]),
    );
    const given = (node.env ?? []).flatMap(({ name, valueFrom }) =>
      valueFrom?.secretKeyRef ? [[name, valueFrom.secretKeyRef.key]] : [],
    );
    expect(given.sort()).toEqual(asked.sort());
    expect(asked).toHaveLength(6);
    expect(nodesOf(local, mainContainer(job)).user).toBe("cluster-create");
  });

  test("are taken away one at a time at most, and replaced by hand alone, since a new one knows nobody", () => {
    expect(named(local, "PodDisruptionBudget", "redis").spec).toMatchObject({
      maxUnavailable: 1,
      selector: { matchLabels: nodes.spec?.selector.matchLabels },
    });
    expect(nodes.spec?.updateStrategy).toEqual({ type: "OnDelete" });
  });

  test("and the Job run as users without rights, by the strictest standard", () => {
    for (const workload of [nodes, job]) {
      const { spec } = podOf(workload);
      expect(spec).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false });
      expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } });
      for (const { securityContext, resources } of spec.containers) {
        expect(securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ["ALL"] },
        });
        expect(Object.keys(resources?.limits ?? {}).sort()).toEqual(["cpu", "memory"]);
      }
    }
  });

  test("are reached on their bus, which asks for no password, by each other alone", () => {
    const rules = ofKind(local, "NetworkPolicy").flatMap(({ spec }) => spec?.ingress ?? []);
    const toBus = rules.filter(({ ports }) => ports?.some(({ port }) => port === 16_379));
    expect(toBus.flatMap(({ from }) => from)).toEqual([{ podSelector: nodes.spec?.selector }]);
  });
});

test("The cluster overlay brings no Redis of its own, nor a Secret, and asks for those of production", async () => {
  const [cluster] = overlays as [(typeof overlays)[number]];
  const kinds = cluster.objects.map(({ kind }) => kind as string);
  for (const kind of ["StatefulSet", "Job", "Secret"]) expect(kinds).not.toContain(kind);
  expect(cluster.objects.map(({ metadata }) => metadata?.name)).not.toContain("redis");
  const keys = ofKind(cluster.objects, "Deployment")
    .flatMap(containersOf)
    .flatMap(({ env }) => env ?? [])
    .flatMap(({ valueFrom }) => valueFrom?.secretKeyRef?.key ?? []);
  expect((await outsideSecrets("cluster")).get("relay-redis")?.sort()).toEqual(keys.sort());
  expect(podOf(named(cluster.objects, "Deployment", "gateway")).spec.initContainers).toHaveLength(1);
});

/** Their names end in a hash of the contents: what is left over is in the way of nothing. */
const GENERATED = ["ConfigMap", "Secret"];

test.each([
  ["cluster", "production", "back-to-one-redis"],
  ["cluster-local", "local", "back-to-one-local-redis"],
] as const)("The way back from %s to %s deletes what only the cluster had", async (from, to, block) => {
  const operations = await readFile(new URL("../../../docs/operations.md", import.meta.url), "utf8");
  const commands = codeBlock(operations, `sh ${block}`).replaceAll("\\\n", "");
  const namesIn = (objects: Awaited<ReturnType<typeof render>>) =>
    objects
      .filter(({ kind }) => !GENERATED.includes(kind as string))
      .map(({ kind, metadata }) => `${kind?.toLowerCase()}/${metadata?.name}`);
  const kept = new Set(namesIn(await render(to)));
  const deleted = commands.split("\n").filter((line) => line.includes(" delete "));
  expect(deleted.flatMap((line) => line.match(/[a-z]+\/[\w-]+/g) ?? []).sort()).toEqual(
    namesIn(await render(from))
      .filter((name) => !kept.has(name))
      .sort(),
  );
  expect(commands).toContain(`kubectl apply -k deploy/kubernetes/overlays/${to}\n`);
});
