import { describe, expect, test } from "@jest/globals";
import type { IPodSpec } from "kubernetes-models/v1";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import { readWsConnectorSettings } from "ws-connector/settings.ts";
import { kubernetesFile } from "../../support/sources.ts";
import { environmentOf } from "./environment.ts";
import { mainContainer, named, OVERLAYS, ofKind, podOf, render, SERVICES } from "./manifests.ts";

const overlays = await Promise.all(OVERLAYS.map(async (overlay) => ({ overlay, objects: await render(overlay) })));
const production = overlays.find(({ overlay }) => overlay === "production")?.objects ?? [];

describe.each(overlays)("A rollout of the $overlay overlay", ({ objects }) => {
  const deployments = SERVICES.map((name) => {
    const deployment = named(objects, "Deployment", name);
    return { name, deployment, container: mainContainer(deployment), pod: podOf(deployment).spec };
  });

  test.each(deployments)("starts a pod of $name before it stops one, and waits until it is ready", ({ deployment }) => {
    const { strategy, minReadySeconds } = deployment.spec ?? {};
    expect(strategy).toEqual({ type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } });
    expect(minReadySeconds).toBeGreaterThanOrEqual(10);
  });

  test.each(deployments)("restarts $name when it does not answer, never for want of Redis", ({ container }) => {
    expect(container.startupProbe?.httpGet).toEqual({ path: SURFACES.health.path, port: "http" });
    expect(container.livenessProbe?.httpGet).toEqual({ path: SURFACES.health.path, port: "http" });
    expect(container.readinessProbe?.httpGet).toEqual({ path: SURFACES.ready.path, port: "http" });
  });

  /** Whether these times suffice: test/deploy/kubernetes-times.test.ts. */
  test.each(deployments)("gives $name the times of base/service-pod.yaml", async ({ deployment, container, pod }) => {
    const [shared] = await kubernetesFile<{ minReadySeconds: number; template: { spec: IPodSpec } }>(
      "base/service-pod.yaml",
    );
    const { terminationGracePeriodSeconds, containers } = (shared as NonNullable<typeof shared>).spec.template
      .spec as IPodSpec;
    expect(deployment.spec?.minReadySeconds).toBe(shared?.spec.minReadySeconds);
    expect(pod.terminationGracePeriodSeconds).toBe(terminationGracePeriodSeconds);
    for (const times of ["lifecycle", "startupProbe", "readinessProbe", "livenessProbe"] as const) {
      expect(container[times]).toEqual(containers[0]?.[times]);
      expect(container[times]).toBeDefined();
    }
  });

  test.each(deployments)("spreads $name over nodes and zones, each ReplicaSet by itself", ({ pod, deployment }) => {
    const { labels } = podOf(deployment);
    const constraints = pod.topologySpreadConstraints ?? [];
    expect(constraints.map(({ topologyKey }) => topologyKey)).toEqual([
      "kubernetes.io/hostname",
      "topology.kubernetes.io/zone",
    ]);
    for (const { labelSelector, matchLabelKeys } of constraints) {
      expect(labels).toMatchObject(labelSelector?.matchLabels ?? {});
      expect(matchLabelKeys).toEqual(["app.kubernetes.io/name", "pod-template-hash"]);
    }
  });

  test("lets one pod of a service go at a time when nodes are drained", () => {
    const budgets = ofKind(objects, "PodDisruptionBudget");
    expect(budgets.map(({ metadata }) => metadata?.name).sort()).toEqual([...SERVICES].sort());
    for (const { spec } of budgets) {
      expect(spec).toMatchObject({ maxUnavailable: 1, unhealthyPodEvictionPolicy: "AlwaysAllow" });
    }
  });
});

describe("In production", () => {
  const [scaler] = ofKind(production, "HorizontalPodAutoscaler");

  test("two pods at least answer for each service, and three connectors", () => {
    for (const name of ["gateway", "ops-reporting"]) {
      expect(named(production, "Deployment", name).spec?.replicas).toBeGreaterThanOrEqual(2);
    }
    expect(scaler?.spec?.minReplicas).toBeGreaterThanOrEqual(3);
  });

  test("a node that is drained leaves each service a pod", () => {
    const counts = { gateway: 0, "ops-reporting": 0, "ws-connector": scaler?.spec?.minReplicas ?? 0 };
    for (const { metadata, spec } of ofKind(production, "PodDisruptionBudget")) {
      const name = metadata?.name as keyof typeof counts;
      const pods = named(production, "Deployment", name).spec?.replicas ?? counts[name];
      expect(pods).toBeGreaterThan(Number(spec?.maxUnavailable));
    }
  });

  test("the number of connectors is the autoscaler's alone, so that an apply closes no connections", () => {
    expect(scaler?.spec?.scaleTargetRef).toEqual({ apiVersion: "apps/v1", kind: "Deployment", name: "ws-connector" });
    expect(named(production, "Deployment", "ws-connector").spec).not.toHaveProperty("replicas");
  });

  test("connectors are added by CPU and by connections, well before a pod turns clients away", () => {
    const [cpu, connections] = scaler?.spec?.metrics ?? [];
    expect(cpu?.resource).toMatchObject({ name: "cpu", target: { type: "Utilization" } });
    const container = mainContainer(named(production, "Deployment", "ws-connector"));
    expect(container.resources?.requests).toHaveProperty("cpu");
    const { maxConnections } = readWsConnectorSettings({ ...environmentOf(production, container), PORT: "8080" });
    expect(Number(connections?.pods?.target.averageValue)).toBeLessThanOrEqual(maxConnections / 2);
  });

  test("connectors are taken away one in five minutes, after a quarter of an hour without need", () => {
    expect(scaler?.spec?.behavior?.scaleDown).toEqual({
      stabilizationWindowSeconds: 900,
      policies: [{ type: "Pods", value: 1, periodSeconds: 300 }],
    });
  });
});

test("On a machine of one's own there is one pod of each", () => {
  const objects = overlays.find(({ overlay }) => overlay === "local")?.objects ?? [];
  expect(ofKind(objects, "HorizontalPodAutoscaler")).toEqual([]);
  for (const { spec } of ofKind(objects, "Deployment")) expect(spec?.replicas ?? 1).toBe(1);
});
