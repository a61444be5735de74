import { describe, expect, test } from "@jest/globals";
import type { IContainer } from "kubernetes-models/v1";
import { environmentOf } from "./environment.ts";
import { containersOf, mainContainer, named, OVERLAYS, ofKind, podOf, render, SERVICES } from "./manifests.ts";

const overlays = await Promise.all(OVERLAYS.map(async (overlay) => ({ overlay, objects: await render(overlay) })));

/** The key of the Secret with the Redis passwords that a variable holds. */
function passwordKey(container: IContainer, variable: string): string | undefined {
  const reference = container.env?.find(({ name }) => name === variable)?.valueFrom?.secretKeyRef;
  return reference?.name?.startsWith("relay-redis") ? reference.key : undefined;
}

describe.each(overlays)("The $overlay overlay", ({ objects }) => {
  const deployment = named(objects, "Deployment", "redis");
  const redis = mainContainer(deployment);
  const { spec } = podOf(deployment);
  const files = ofKind(objects, "ConfigMap").find(({ metadata }) => metadata?.name?.startsWith("redis-config-"))?.data;
  const users = Array.from((files?.["users.acl"] ?? "").matchAll(/^user (\S+) on #(\w+)/gm), ([, user, variable]) => ({
    user: user as string,
    variable: variable as string,
  }));

  test("starts Redis by the script of its ConfigMap, with the passwords and the memory that the script asks for", () => {
    expect(redis.command).toEqual(["sh", "/etc/agent-relay/start.sh"]);
    expect(redis.volumeMounts).toContainEqual({ name: "config", mountPath: "/etc/agent-relay", readOnly: true });
    const config = spec.volumes?.find(({ name }) => name === "config")?.configMap?.name;
    expect(named(objects, "ConfigMap", config ?? "").data).toBe(files);

    expect(files?.["start.sh"]).toContain("REDIS_MAXMEMORY");
    const variables = redis.env?.map(({ name }) => name).sort();
    expect(variables).toEqual([...users.map(({ variable }) => variable), "REDIS_MAXMEMORY"].sort());
  });

  test("gives each Redis user one password, which the user's own container holds and no other", () => {
    expect(users.map(({ user }) => user)).toEqual(["gateway", "ws-connector", "ops-reporting", "window-reset"]);
    const others = ofKind(objects, "Deployment")
      .flatMap(containersOf)
      .filter(({ name }) => name !== "redis");
    for (const { user, variable } of users) {
      expect(passwordKey(redis, variable)).toBe(user);
      const holders = others.filter((container) => passwordKey(container, "REDIS_PASSWORD") === user);
      const urls = holders.map((container) => new URL(environmentOf(objects, container).REDIS_URL ?? ""));
      expect(urls.map(({ username }) => username)).toEqual([user]);
    }
  });

  test("keeps the window in memory: one pod, replaced rather than doubled, with nothing to write to but a small tmpfs", () => {
    expect(deployment.spec?.replicas).toBe(1);
    expect(deployment.spec?.strategy).toEqual({ type: "Recreate" });
    expect(spec.volumes?.filter(({ emptyDir }) => emptyDir)).toEqual([
      { name: "tmp", emptyDir: { medium: "Memory", sizeLimit: "1Mi" } },
    ]);
    expect(redis.volumeMounts).toContainEqual({ name: "tmp", mountPath: "/tmp" });
  });

  test("would rather have Redis on a node of its own, and starts it on any", () => {
    const services = { matchLabels: { "app.kubernetes.io/component": "service" } };
    const term = { topologyKey: "kubernetes.io/hostname", labelSelector: services };
    expect(spec.affinity).toEqual({
      podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, podAffinityTerm: term }] },
    });
    for (const name of SERVICES) {
      expect(podOf(named(objects, "Deployment", name)).labels).toMatchObject(services.matchLabels);
    }
    const { annotations } = deployment.spec?.template.metadata ?? {};
    expect(annotations).toEqual({ "cluster-autoscaler.kubernetes.io/safe-to-evict": "false" });
  });

  test("leaves Redis a quarter more memory than it may fill, so that it refuses before the kernel ends it", () => {
    const megabytes = /^([0-9]+)(mb|gb)$/.exec(environmentOf(objects, redis).REDIS_MAXMEMORY ?? "");
    const maxMemory = Number(megabytes?.[1]) * (megabytes?.[2] === "gb" ? 1024 : 1);
    const limit = /^([0-9]+)Mi$/.exec(String(redis.resources?.limits?.memory))?.[1];
    expect(Number(limit)).toBeGreaterThanOrEqual(maxMemory * 1.25);
  });

  test("asks Redis for a PING, which is all that a client without password may", () => {
    for (const probe of [redis.startupProbe, redis.readinessProbe, redis.livenessProbe]) {
      expect(probe?.exec?.command).toEqual(["redis-cli", "ping"]);
    }
    expect(files?.["users.acl"]).toMatch(/^user default on nopass .*-@all \+ping$/m);
  });
});

test("No volume of any overlay outlives its pod", () => {
  const kinds = new Set(["configMap", "secret", "emptyDir"]);
  for (const { objects } of overlays) {
    expect(objects.map(({ kind }) => String(kind))).not.toContain("PersistentVolumeClaim");
    for (const deployment of ofKind(objects, "Deployment")) {
      for (const { name, ...source } of podOf(deployment).spec.volumes ?? []) {
        for (const kind of Object.keys(source)) expect(kinds).toContain(kind);
      }
    }
  }
});
