import type { Mutation } from "../mutation.ts";

const ROUTES = "test/deploy/kubernetes-edge.test.ts";
const ENVOY = "test/deploy/envoy-gateway.test.ts";
const TIMES = "test/deploy/kubernetes-times.test.ts";

/** The edge in Kubernetes, and the times of its pods. */
export const KUBERNETES_MUTATIONS: readonly Mutation[] = [
  {
    name: "a pod that is busy for long is not ended with all its connections",
    file: "deploy/kubernetes/base/service-pod.yaml",
    find: "            failureThreshold: 6\n",
    replace: "",
    tests: [TIMES],
  },
  {
    name: "routes of Kubernetes by method",
    file: "deploy/kubernetes/base/edge.yaml",
    find: "{ method: POST, path: { type: PathPrefix, value: /api/public } }",
    replace: "path: { type: Exact, value: /api/public/feedbacks }",
    tests: [ROUTES],
  },
  {
    name: "X-Forwarded-Host of clients ends at the edge of Kubernetes",
    file: "deploy/kubernetes/base/edge.yaml",
    find: "filters: *filters",
    replace: "filters: []",
    tests: [ROUTES],
  },
  {
    name: "websockets of Kubernetes without a bound of their age",
    file: "deploy/kubernetes/base/edge.yaml",
    find: "timeouts: { request: 0s }",
    replace: "timeouts: { request: 60s }",
    tests: [ROUTES],
  },
  {
    name: "Envoy logs no request",
    file: "deploy/kubernetes/components/envoy-gateway/envoy-proxy.yaml",
    find: "accessLog: { disable: true }",
    replace: "accessLog: { disable: false }",
    tests: [ENVOY],
  },
  {
    name: "limits of Envoy by address",
    file: "deploy/kubernetes/components/envoy-gateway/backend-traffic.yaml",
    find: `[{ sourceCIDR: { type: Distinct, value: "::/0" } }]
          limit: *requests`,
    replace: `[{ sourceCIDR: { type: Exact, value: "::/0" } }]
          limit: *requests`,
    tests: [ENVOY],
  },
  {
    name: "Envoy hands on every websocket that it takes",
    file: "deploy/kubernetes/components/envoy-gateway/backend-traffic.yaml",
    find: "{ maxConnections: 50000, maxPendingRequests: 50000, maxParallelRequests: 50000 }",
    replace: "{ maxConnections: 50000, maxPendingRequests: 50000, maxParallelRequests: 1024 }",
    tests: [ENVOY],
  },
  {
    name: "one Gateway's Envoys alone reach the services",
    file: "deploy/kubernetes/components/envoy-gateway/network-policy.yaml",
    find: "gateway.envoyproxy.io/owning-gateway-namespace: agent-relay",
    replace: "app.kubernetes.io/name: envoy",
    tests: [ENVOY],
  },
  {
    name: "a pod's time to drain",
    file: "deploy/kubernetes/base/service-pod.yaml",
    find: "terminationGracePeriodSeconds: 60",
    replace: "terminationGracePeriodSeconds: 40",
    tests: [TIMES],
  },
];
