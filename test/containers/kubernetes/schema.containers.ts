import { describe, expect, test } from "@jest/globals";
import * as envoyGateway from "@kubernetes-models/envoy-gateway/gateway.envoyproxy.io/v1alpha1";
import * as gatewayApi from "@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1";
import * as monitoring from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1";
import * as apps from "kubernetes-models/apps/v1";
import * as autoscaling from "kubernetes-models/autoscaling/v2";
import * as batch from "kubernetes-models/batch/v1";
import * as networking from "kubernetes-models/networking.k8s.io/v1";
import * as policy from "kubernetes-models/policy/v1";
import * as core from "kubernetes-models/v1";
import { kubernetesFile } from "../../support/sources.ts";
import { ALL_OVERLAYS, type Manifest, ofKind, render } from "./manifests.ts";

const MODELS: Record<string, object> = {
  v1: core,
  "apps/v1": apps,
  "autoscaling/v2": autoscaling,
  "batch/v1": batch,
  "networking.k8s.io/v1": networking,
  "policy/v1": policy,
  "gateway.networking.k8s.io/v1": gatewayApi,
  "gateway.envoyproxy.io/v1alpha1": envoyGateway,
  "monitoring.coreos.com/v1": monitoring,
};

function validate(object: unknown): void {
  const { apiVersion, kind } = object as Manifest;
  const models = MODELS[apiVersion] as Record<string, { prototype: { validate(): void } }>;
  const model = models[kind];
  if (model === undefined) throw new Error(`The API has no ${apiVersion} ${kind}.`);
  model.prototype.validate.call(object);
}

/** The same value, which tells of every field that is looked at. */
function watched(value: object, path: string, seen: Set<string>): object {
  return new Proxy(value, {
    get(target, key) {
      const member = Reflect.get(target, key);
      if (typeof key === "string") seen.add(`${path}.${key}`);
      return typeof member === "object" && member !== null ? watched(member, `${path}.${key as string}`, seen) : member;
    },
  });
}

/** Validators pass over a field that they do not know: it is one that they never looked at. */
function unknownFields(object: object): string[] {
  const seen = new Set<string>();
  validate(watched(object, "", seen));
  const fields = (value: unknown, path: string): string[] =>
    typeof value !== "object" || value === null
      ? []
      : Object.entries(value).flatMap(([key, member]) => [`${path}.${key}`, ...fields(member, `${path}.${key}`)]);
  return fields(object, "").filter((path) => !seen.has(path));
}

const overlays = await Promise.all(ALL_OVERLAYS.map(async (overlay) => ({ overlay, objects: await render(overlay) })));

describe.each(overlays)("The $overlay overlay", ({ objects }) => {
  const cases = objects.map((object) => ({ name: `${object.kind} ${object.metadata?.name}`, object }));

  test.each(cases)("has a $name that its API takes", ({ object }) => {
    expect(() => validate(object)).not.toThrow();
    expect(unknownFields(object)).toEqual([]);
  });

  test("names no object twice", () => {
    const names = cases.map(({ name }) => name);
    expect(names).toEqual([...new Set(names)]);
  });

  test("keeps everything in a namespace of its own", () => {
    for (const { kind, metadata } of objects) {
      if (kind === "Namespace") expect(metadata?.name).toBe("agent-relay");
      else expect(metadata?.namespace).toBe("agent-relay");
    }
  });
});

test("The GatewayClass that the cluster is given is that of the Gateways, and its API takes it", async () => {
  const [gatewayClass, ...others] = await kubernetesFile("components/envoy-gateway/gateway-class.yaml");
  expect(() => validate(gatewayClass)).not.toThrow();
  expect(unknownFields(gatewayClass as object)).toEqual([]);
  expect(others).toEqual([]);
  const gateways = overlays.flatMap(({ objects }) => ofKind(objects, "Gateway"));
  expect(new Set(gateways.map(({ spec }) => spec.gatewayClassName))).toEqual(new Set([gatewayClass?.metadata.name]));
});

test("A misspelled field and a wrong value are noticed", () => {
  const pod = { apiVersion: "v1", kind: "Pod", spec: { containers: [{ name: "a", livnessProbe: {} }] } };
  expect(unknownFields(pod)).toEqual([".spec.containers.0.livnessProbe"]);
  expect(() => validate({ ...pod, spec: { containers: "a" } })).toThrow(/array/);
});
