import { readFile } from "node:fs/promises";
import { expect, test } from "@jest/globals";
import { CONNECTION_LIMITS } from "relay-protocol/wire/limits.ts";
import { settingsReader } from "relay-runtime/settings.ts";
import { REDIS_LIMITS } from "relay-window/redis/redis-limits.ts";
import { rowsBetween } from "../support/documents.ts";
import { type KubernetesObject, kubernetesFile, secondsOf } from "../support/sources.ts";

interface Probe {
  readonly periodSeconds: number;
  readonly timeoutSeconds?: number;
  readonly failureThreshold?: number;
}
interface Container {
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
  readonly lifecycle: { readonly preStop: { readonly sleep: { readonly seconds: number } } };
  readonly startupProbe: Probe;
  readonly readinessProbe: Probe;
  readonly livenessProbe: Probe;
}
interface Pod {
  readonly terminationGracePeriodSeconds: number;
  readonly containers: readonly [Container];
}
interface Deployment {
  readonly minReadySeconds: number;
  readonly template: { readonly spec: Pod };
}
interface Autoscaler {
  readonly behavior: {
    readonly scaleDown: {
      readonly stabilizationWindowSeconds: number;
      readonly policies: readonly [{ readonly value: number; readonly periodSeconds: number }];
    };
  };
}
interface EnvoyProxy {
  readonly shutdown: { readonly drainTimeout: string };
}

/** What Kubernetes does when a probe says nothing else. */
const DEFAULT_FAILURES = 3;
/**
 * For what follows a drain: what was promised is read before a close, for as long as a slow reader may take, and then the last answers,
 * routes and counters. docs/operations.md#images asks for as much.
 */
const AFTER_DRAIN_MS = CONNECTION_LIMITS.outboxStalledAfterMs + 10_000;

const operations = await readFile(new URL("../../docs/operations.md", import.meta.url), "utf8");
const { minReadySeconds, template } = (await only<Deployment>("base/service-pod.yaml", "Deployment")).spec;
const { terminationGracePeriodSeconds, containers } = template.spec;
const { lifecycle, readinessProbe, livenessProbe, startupProbe } = containers[0];
const preStopSeconds = lifecycle.preStop.sleep.seconds;
const { drainMs } = settingsReader("RELAY_DRAIN_MS")({ RELAY_DRAIN_MS: await givenToConnectors("RELAY_DRAIN_MS") });
const { scaleDown } = (await only<Autoscaler>("base/ws-connector.yaml", "HorizontalPodAutoscaler")).spec.behavior;
const { shutdown } = (await only<EnvoyProxy>("components/envoy-gateway/envoy-proxy.yaml", "EnvoyProxy")).spec;

async function only<Spec>(file: string, kind: string): Promise<KubernetesObject<Spec>> {
  const [found, ...others] = (await kubernetesFile<Spec>(file)).filter((object) => object.kind === kind);
  if (found === undefined || others.length > 0) throw new Error(`${file} has one ${kind}.`);
  return found;
}

async function givenToConnectors(name: string): Promise<string | undefined> {
  const { spec } = await only<Deployment>("base/ws-connector.yaml", "Deployment");
  return spec.template.spec.containers[0].env?.find((variable) => variable.name === name)?.value;
}

test("docs/operations.md has the times of the manifests", () => {
  const [{ value, periodSeconds }] = scaleDown.policies;
  expect(value).toBe(1);
  const seconds = rowsBetween(operations, "kubernetes times").map(([, each]) => Number(each));
  expect(seconds).toEqual([
    preStopSeconds,
    drainMs / 1000,
    terminationGracePeriodSeconds,
    minReadySeconds,
    periodSeconds,
    scaleDown.stabilizationWindowSeconds,
    secondsOf(shutdown.drainTimeout),
  ]);
});

test("a pod has the time that it takes to end: the edge forgets it, it drains, and writes what is left", () => {
  expect(preStopSeconds).toBeGreaterThanOrEqual(5);
  expect(terminationGracePeriodSeconds * 1000).toBeGreaterThanOrEqual(preStopSeconds * 1000 + drainMs + AFTER_DRAIN_MS);
});

test("a pod of a rollout, or one that the autoscaler takes away, is gone before the next one goes", () => {
  expect(scaleDown.policies[0].periodSeconds).toBeGreaterThanOrEqual(terminationGracePeriodSeconds);
  expect(minReadySeconds).toBeGreaterThanOrEqual(readinessProbe.periodSeconds);
});

test("a pod is told unready while Redis is silent, never for an answer that comes as late as it may", () => {
  expect((readinessProbe.timeoutSeconds ?? 1) * 1000).toBeGreaterThan(2 * REDIS_LIMITS.commandTimeoutMs);
  expect(readinessProbe.failureThreshold).toBeGreaterThan(1);
});

test("a pod is ended when it hangs, not when it is busy, and not while it starts", () => {
  const { periodSeconds, failureThreshold = DEFAULT_FAILURES } = livenessProbe;
  const BUSY_SECONDS = 20;
  expect(periodSeconds * (failureThreshold - 1)).toBeGreaterThan(BUSY_SECONDS);
  expect(periodSeconds * failureThreshold).toBeLessThanOrEqual(60);
  expect(startupProbe.periodSeconds * (startupProbe.failureThreshold ?? 0)).toBeGreaterThanOrEqual(60);
});
