import { describe, expect, test } from "@jest/globals";
import type { IContainer } from "kubernetes-models/v1";
import { METRICS } from "relay-runtime/metrics/catalogue.ts";
import {
  containersOf,
  type Manifest,
  mainContainer,
  named,
  OVERLAYS,
  ofKind,
  outsideSecrets,
  podOf,
  render,
  SERVICES,
  selects,
} from "./manifests.ts";

const overlays = await Promise.all(
  OVERLAYS.map(async (overlay) => ({
    overlay,
    objects: await render(overlay),
    outside: await outsideSecrets(overlay),
  })),
);

/** Names of the Deployments whose pods the labels select. */
function selectedBy(objects: readonly Manifest[], labels: Record<string, string> | undefined): string[] {
  return ofKind(objects, "Deployment")
    .filter((deployment) => selects(labels, podOf(deployment).labels))
    .map(({ metadata }) => metadata?.name ?? "");
}

function secretsReadBy(container: IContainer): (readonly [string, string])[] {
  return (container.env ?? []).flatMap(({ valueFrom }) =>
    valueFrom?.secretKeyRef ? [[valueFrom.secretKeyRef.name ?? "", valueFrom.secretKeyRef.key] as const] : [],
  );
}

/** Names of the Secrets whose certificates the edge shows. */
function certificatesOf(objects: readonly Manifest[]): (string | undefined)[] {
  const listeners = ofKind(objects, "Gateway").flatMap(({ spec }) => spec.listeners ?? []);
  return [
    ...listeners.flatMap(({ tls }) => tls?.certificateRefs ?? []).map(({ name }) => name),
    ...ofKind(objects, "Ingress")
      .flatMap(({ spec }) => spec?.tls ?? [])
      .map(({ secretName }) => secretName),
  ];
}

describe.each(overlays)("The $overlay overlay", ({ objects, outside }) => {
  const deployments = ofKind(objects, "Deployment");

  /** The keys of a Secret, made here or outside. */
  function keysOf(name: string): string[] {
    return outside.get(name) ?? Object.keys(named(objects, "Secret", name).data ?? {});
  }

  test("has the three services and one Redis", () => {
    expect(deployments.map(({ metadata }) => metadata?.name).sort()).toEqual([...SERVICES, "redis"].sort());
  });

  test("selects with each Deployment, Service and disruption budget the pods of its own name and no others", () => {
    for (const { metadata, spec } of deployments) {
      expect(selectedBy(objects, spec?.selector.matchLabels)).toEqual([metadata?.name]);
    }
    for (const { metadata, spec } of ofKind(objects, "Service")) {
      expect(selectedBy(objects, spec?.selector)).toEqual([metadata?.name]);
    }
    for (const { metadata, spec } of ofKind(objects, "PodDisruptionBudget")) {
      expect(selectedBy(objects, spec?.selector?.matchLabels)).toEqual([metadata?.name]);
    }
  });

  test("has a Service for each Deployment, which leads to ports that the container has", () => {
    for (const deployment of deployments) {
      const { spec } = named(objects, "Service", deployment.metadata?.name ?? "");
      const ports = mainContainer(deployment).ports ?? [];
      expect(spec?.ports?.map(({ targetPort, port }) => ({ name: targetPort, containerPort: port }))).toEqual(ports);
    }
  });

  test("mounts only what its pods have, from ConfigMaps and Secrets that exist", () => {
    for (const deployment of deployments) {
      const volumes = podOf(deployment).spec.volumes ?? [];
      for (const container of containersOf(deployment)) {
        const mounted = (container.volumeMounts ?? []).map(({ name }) => name);
        expect(volumes.map(({ name }) => name)).toEqual(expect.arrayContaining(mounted));
      }
      for (const { configMap, secret } of volumes) {
        if (configMap) named(objects, "ConfigMap", configMap.name ?? "");
        if (secret) expect(keysOf(secret.secretName ?? "")).toContain("keys.json");
      }
    }
  });

  test("reads only keys of Secrets that it makes or that its head tells the operator to make", () => {
    const read = deployments.flatMap(containersOf).flatMap(secretsReadBy);
    expect(read.length).toBeGreaterThan(0);
    for (const [name, key] of read) expect(keysOf(name)).toContain(key);
  });

  test("asks the operator for no Secret that nobody reads", () => {
    const secrets = [
      ...deployments.flatMap(containersOf).flatMap(secretsReadBy),
      ...deployments
        .flatMap((deployment) => podOf(deployment).spec.volumes ?? [])
        .flatMap(({ secret }) => (secret ? [[secret.secretName, "keys.json"] as const] : [])),
      ...certificatesOf(objects).flatMap((name) => [[name, "tls.crt"] as const, [name, "tls.key"] as const]),
    ];
    const named = [...outside].flatMap(([name, keys]) => keys.map((key) => [name, key]));
    for (const secret of named) expect(secrets).toContainEqual(secret);
    expect(named.length).toBeGreaterThan(0);
  });

  test("names its ConfigMaps by their contents, so that a change rolls the pods, and the keys not, so that it does not", () => {
    for (const { metadata } of ofKind(objects, "ConfigMap")) expect(metadata?.name).toMatch(/-[a-z0-9]{10}$/);
    expect(outside.get("relay-keys")).toEqual(["keys.json"]);
  });

  test("says of every image which one it is", () => {
    for (const deployment of deployments) {
      const name = deployment.metadata?.name;
      const image = name === "redis" ? /^redis:8-alpine$/ : new RegExp(`agent-relay/${name}:(?!latest)[\\w.-]+$`);
      for (const container of containersOf(deployment)) expect(container.image).toMatch(image);
    }
  });
});

test("In production Prometheus scrapes the three services, and the autoscaler reads a metric that they have", () => {
  const objects = overlays.find(({ overlay }) => overlay === "production")?.objects ?? [];
  const { spec } = named(objects, "ServiceMonitor", "agent-relay");
  const scraped = ofKind(objects, "Service").filter(({ metadata }) =>
    selects(spec?.selector.matchLabels, metadata?.labels ?? {}),
  );
  expect(scraped.map(({ metadata }) => metadata?.name).sort()).toEqual([...SERVICES].sort());
  for (const service of scraped) expect(service.spec?.ports?.map(({ name }) => name)).toContain("metrics");
  expect(spec?.endpoints.map(({ port }) => port)).toEqual(["metrics"]);

  const [scaler] = ofKind(objects, "HorizontalPodAutoscaler");
  const metrics = scaler?.spec?.metrics?.flatMap(({ pods }) => (pods ? [pods.metric.name] : []));
  expect(metrics).toEqual(["relay_connections"]);
  expect(Object.keys(METRICS)).toContain("relay_connections");
});
