import { describe, expect, test } from "@jest/globals";
import type { INetworkPolicy, INetworkPolicyPeer, INetworkPolicyPort } from "kubernetes-models/networking.k8s.io/v1";
import {
  containersOf,
  type Labels,
  type Manifest,
  named,
  OVERLAYS,
  ofKind,
  podOf,
  render,
  SERVICES,
  selects,
} from "./manifests.ts";

interface Pod {
  readonly name: string;
  readonly namespace: string;
  readonly labels: Labels;
}
type Direction = "ingress" | "egress";
type Policies = readonly INetworkPolicy[];
/** A rule of either direction. */
interface Rule {
  readonly from?: readonly INetworkPolicyPeer[];
  readonly to?: readonly INetworkPolicyPeer[];
  readonly ports?: readonly INetworkPolicyPort[];
}

/** Pods that are not the relay's. */
const OTHERS: readonly Pod[] = [
  { name: "prometheus", namespace: "monitoring", labels: { "app.kubernetes.io/name": "prometheus" } },
  { name: "dns", namespace: "kube-system", labels: { "k8s-app": "kube-dns" } },
  { name: "system", namespace: "kube-system", labels: {} },
  { name: "stranger", namespace: "default", labels: { "app.kubernetes.io/component": "service" } },
  { name: "newcomer", namespace: "agent-relay", labels: {} },
];
/** The pods of each overlay's edge, and of another edge beside it. */
const ENVOY = { name: "edge", namespace: "envoy-gateway-system", labels: envoyOf("agent-relay") };
const CONTROLLER = { name: "edge", namespace: "ingress-controller", labels: {} };
const OTHER_ENVOY = { name: "other-edge", namespace: "envoy-gateway-system", labels: envoyOf("shop") };
const EDGES = { local: ENVOY, production: ENVOY, ingress: CONTROLLER };
const PORTS = ["TCP 53", "UDP 53", "TCP 443", "TCP 6379", "TCP 8080", "TCP 9090", "UDP 8080"];

function envoyOf(namespace: string): Labels {
  const owner = "gateway.envoyproxy.io/owning-gateway";
  return { [`${owner}-namespace`]: namespace, [`${owner}-name`]: "relay" };
}

function podsOf(objects: readonly Manifest[]): Pod[] {
  return ofKind(objects, "Deployment").map((deployment) => ({
    name: deployment.metadata?.name ?? "",
    namespace: "agent-relay",
    labels: podOf(deployment).labels,
  }));
}

/** Whether one end of a connection lets it pass: yes when no policy is about it, else when one of them says so. */
function passes(policies: Policies, direction: Direction, end: Pod, other: Pod, port: string): boolean {
  const type = direction === "ingress" ? "Ingress" : "Egress";
  const about = policies.filter(
    ({ metadata, spec }) =>
      metadata?.namespace === end.namespace &&
      selects(spec?.podSelector?.matchLabels, end.labels) &&
      spec?.policyTypes?.includes(type),
  );
  if (about.length === 0) return true;
  return about
    .flatMap(({ spec }): readonly Rule[] => spec?.[direction] ?? [])
    .some((rule) => {
      const peers = (direction === "ingress" ? rule.from : rule.to) ?? [];
      const ports = (rule.ports ?? []).map((each) => `${each.protocol} ${each.port}`);
      return ports.includes(port) && peers.some((peer) => isPeer(peer, other));
    });
}

/** Without a namespaceSelector it is the policy's own namespace. Source: Kubernetes API, NetworkPolicyPeer. */
function isPeer({ namespaceSelector, podSelector, ipBlock }: INetworkPolicyPeer, pod: Pod): boolean {
  if (ipBlock) throw new Error("Policies here name pods, not addresses.");
  const isNamespace = namespaceSelector
    ? selects(namespaceSelector.matchLabels, { "kubernetes.io/metadata.name": pod.namespace })
    : pod.namespace === "agent-relay";
  return isNamespace && selects(podSelector?.matchLabels, pod.labels);
}

const overlays = await Promise.all(OVERLAYS.map(async (overlay) => ({ overlay, objects: await render(overlay) })));

describe.each(overlays)("The $overlay overlay", ({ overlay, objects }) => {
  const deployments = ofKind(objects, "Deployment").map((deployment) => ({
    name: deployment.metadata?.name ?? "",
    deployment,
  }));

  test.each(deployments)("runs $name as a user without rights, by the strictest standard", ({ name, deployment }) => {
    const { spec } = podOf(deployment);
    const user = name === "redis" ? { runAsUser: 999, runAsGroup: 999 } : { runAsUser: 1000, runAsGroup: 1000 };
    expect(spec.securityContext).toMatchObject({
      ...user,
      runAsNonRoot: true,
      seccompProfile: { type: "RuntimeDefault" },
    });
    for (const { securityContext } of containersOf(deployment)) {
      expect(securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      });
    }
    const enforced = "pod-security.kubernetes.io/enforce";
    expect(named(objects, "Namespace", "agent-relay").metadata?.labels).toMatchObject({ [enforced]: "restricted" });
  });

  test.each(deployments)("gives $name neither a token of the cluster nor the addresses of its Services", (each) => {
    const { spec } = podOf(each.deployment);
    expect(spec).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false });
    for (const host of ["hostNetwork", "hostPID", "hostIPC"]) expect(spec).not.toHaveProperty(host);
  });

  test.each(deployments)("bounds what $name takes of its node", ({ deployment }) => {
    for (const { resources } of containersOf(deployment)) {
      for (const bound of [resources?.requests, resources?.limits]) {
        expect(Object.keys(bound ?? {}).sort()).toEqual(["cpu", "memory"]);
      }
    }
  });

  test("lets nothing through but edge and Prometheus to services, and services to Redis and DNS", () => {
    const policies = ofKind(objects, "NetworkPolicy");
    const own = podsOf(objects);
    const all = [...own, ...OTHERS, EDGES[overlay], OTHER_ENVOY];
    const connections = all.flatMap((from) =>
      all
        .filter((to) => own.includes(from) || own.includes(to))
        .flatMap((to) =>
          PORTS.filter(
            (port) => passes(policies, "egress", from, to, port) && passes(policies, "ingress", to, from, port),
          ).map((port) => `${from.name} to ${to.name}, ${port}`),
        ),
    );
    const wanted = SERVICES.flatMap((service) => [
      `edge to ${service}, TCP 8080`,
      `prometheus to ${service}, TCP 9090`,
      `${service} to redis, TCP 6379`,
      `${service} to dns, TCP 53`,
      `${service} to dns, UDP 53`,
    ]);
    expect(connections.sort()).toEqual(wanted.sort());
  });

  test("exposes no Service beyond the cluster but through the edge", () => {
    for (const { spec } of ofKind(objects, "Service")) expect(spec?.type ?? "ClusterIP").toBe("ClusterIP");
  });
});

test("In production no Secret stands in the manifests", () => {
  const objects = overlays.find(({ overlay }) => overlay === "production")?.objects ?? [];
  expect(ofKind(objects, "Secret")).toEqual([]);
});
