import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type {
  IBackendTrafficPolicy,
  IClientTrafficPolicy,
  IEnvoyProxy,
} from "@kubernetes-models/envoy-gateway/gateway.envoyproxy.io/v1alpha1";
import type { IGateway, IHTTPRoute } from "@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1";
import type { IPrometheusRule, IServiceMonitor } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1";
import type { IDeployment, IStatefulSet } from "kubernetes-models/apps/v1";
import type { IHorizontalPodAutoscaler } from "kubernetes-models/autoscaling/v2";
import type { IJob } from "kubernetes-models/batch/v1";
import type { IIngress, INetworkPolicy } from "kubernetes-models/networking.k8s.io/v1";
import type { IPodDisruptionBudget } from "kubernetes-models/policy/v1";
import type { IConfigMap, IContainer, INamespace, IPodSpec, ISecret, IService } from "kubernetes-models/v1";
import { parseAllDocuments } from "yaml";
import { kubectlProgram } from "../../../deploy/local/kubectl-program.mjs";

/** What the overlays of deploy/kubernetes render to, for tests. */

/** On one Redis. */
export const OVERLAYS = ["local", "production", "ingress"] as const;
/** Of these, those whose edge is a Gateway of Envoy Gateway. */
export const GATEWAY_OVERLAYS = ["local", "production"] as const;
export const ALL_OVERLAYS = [...OVERLAYS, "cluster", "cluster-local"] as const;
export type Overlay = (typeof ALL_OVERLAYS)[number];

/** The services of the relay in the cluster. */
export const SERVICES = ["gateway", "ws-connector", "ops-reporting"] as const;

export interface Kinds {
  readonly Namespace: INamespace;
  readonly ConfigMap: IConfigMap;
  readonly Secret: ISecret;
  readonly Service: IService;
  readonly Deployment: IDeployment;
  readonly StatefulSet: IStatefulSet;
  readonly Job: IJob;
  readonly HorizontalPodAutoscaler: IHorizontalPodAutoscaler;
  readonly PodDisruptionBudget: IPodDisruptionBudget;
  readonly Gateway: IGateway;
  readonly HTTPRoute: IHTTPRoute;
  readonly ClientTrafficPolicy: IClientTrafficPolicy;
  readonly BackendTrafficPolicy: IBackendTrafficPolicy;
  readonly EnvoyProxy: IEnvoyProxy;
  readonly Ingress: IIngress;
  readonly NetworkPolicy: INetworkPolicy;
  readonly ServiceMonitor: IServiceMonitor;
  readonly PrometheusRule: IPrometheusRule;
}
export type Manifest = Kinds[keyof Kinds];
export type Labels = Readonly<Record<string, string>>;

/** The objects of an overlay, as `kubectl apply -k` would send them. */
export async function render(overlay: Overlay): Promise<Manifest[]> {
  const folder = fileURLToPath(new URL(`../../../deploy/kubernetes/overlays/${overlay}`, import.meta.url));
  const { stdout } = await promisify(execFile)(kubectlProgram(), ["kustomize", folder]);
  return parseAllDocuments(stdout, { version: "1.1" }).map((document) => document.toJS());
}

/** The objects of one kind. */
export function ofKind<Kind extends keyof Kinds>(objects: readonly Manifest[], kind: Kind): Kinds[Kind][] {
  return objects.filter((object): object is Kinds[Kind] => object.kind === kind);
}

/** @throws {Error} when there is no such object. */
export function named<Kind extends keyof Kinds>(objects: readonly Manifest[], kind: Kind, name: string): Kinds[Kind] {
  const found = ofKind(objects, kind).find((object) => object.metadata?.name === name);
  if (found === undefined) throw new Error(`There is no ${kind} ${name}.`);
  return found;
}

/** What has pods. */
export type Workload = IDeployment | IStatefulSet | IJob;

export function podOf(workload: Workload): { readonly labels: Labels; readonly spec: IPodSpec } {
  const { metadata, spec } = workload.spec?.template ?? {};
  if (metadata?.labels === undefined || !spec) throw new Error("A workload without pods.");
  return { labels: metadata.labels, spec };
}

/** Every container of a workload's pods, init containers first. */
export function containersOf(workload: Workload): IContainer[] {
  const { spec } = podOf(workload);
  return [...(spec.initContainers ?? []), ...spec.containers];
}

/** The container that does a workload's work. */
export function mainContainer(workload: Workload): IContainer {
  const [container, ...others] = podOf(workload).spec.containers;
  if (container === undefined || others.length > 0) throw new Error("A pod has one container beside init containers.");
  return container;
}

/** Whether `matchLabels` select a pod; no others are used here. */
export function selects(matchLabels: Labels | undefined, labels: Labels): boolean {
  return Object.entries(matchLabels ?? {}).every(([name, value]) => labels[name] === value);
}

/** Overlays on another one, which names the Secrets. */
const ON_PRODUCTION: readonly Overlay[] = ["ingress", "cluster"];

/** Secrets that the operator makes, with their keys: the commands in the head of the overlay. */
export async function outsideSecrets(overlay: Overlay): Promise<Map<string, string[]>> {
  const named = ON_PRODUCTION.includes(overlay) ? "production" : overlay;
  const path = new URL(`../../../deploy/kubernetes/overlays/${named}/kustomization.yaml`, import.meta.url);
  const head = (await readFile(path, "utf8")).split("\napiVersion:")[0] ?? "";
  const commands = head.replace(/\\\n#/g, "").matchAll(/create secret (generic|tls) (\S+)(.*)/g);
  return new Map(
    Array.from(commands, ([, type, name = "", options = ""]) => {
      const keys = Array.from(options.matchAll(/--from-(?:literal|file)=([\w.-]+)=/g), ([, key = ""]) => key);
      return [name, type === "tls" ? ["tls.crt", "tls.key"] : keys];
    }),
  );
}
