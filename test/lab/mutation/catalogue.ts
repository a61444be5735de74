import { ACCEPT_FROM_MUTATIONS } from "./catalogue/accept-from.ts";
import { ADMIN_MUTATIONS } from "./catalogue/admin.ts";
import { CLUSTER_MUTATIONS } from "./catalogue/cluster.ts";
import { CLUSTER_NODE_MUTATIONS } from "./catalogue/cluster-nodes.ts";
import { CONNECTOR_MUTATIONS } from "./catalogue/connector.ts";
import { CONNECTOR_END_MUTATIONS } from "./catalogue/connector-ends.ts";
import { CONNECTOR_INIT_MUTATIONS } from "./catalogue/connector-init.ts";
import { CONNECTOR_LYING_RELAY_MUTATIONS } from "./catalogue/connector-lying-relay.ts";
import { CONNECTOR_OUTGOING_MUTATIONS } from "./catalogue/connector-outgoing.ts";
import { CREDENTIAL_MUTATIONS } from "./catalogue/credentials.ts";
import { ENVELOPE_MUTATIONS } from "./catalogue/envelopes.ts";
import { GATEWAY_MUTATIONS } from "./catalogue/gateway.ts";
import { HEARTBEAT_MUTATIONS } from "./catalogue/heartbeats.ts";
import { HTTP_MUTATIONS } from "./catalogue/http.ts";
import { HTTP_CONNECTION_MUTATIONS } from "./catalogue/http-connections.ts";
import { IDEMPOTENCY_MUTATIONS } from "./catalogue/idempotency.ts";
import { INFLOW_MUTATIONS } from "./catalogue/inflow.ts";
import { ISSUER_MUTATIONS } from "./catalogue/issuers.ts";
import { KEY_MUTATIONS } from "./catalogue/keys.ts";
import { KUBERNETES_MUTATIONS } from "./catalogue/kubernetes.ts";
import { LAPSE_MUTATIONS } from "./catalogue/lapses.ts";
import { OWNERSHIP_MUTATIONS } from "./catalogue/ownership.ts";
import { PACKAGE_MUTATIONS } from "./catalogue/packages.ts";
import { PRIVACY_MUTATIONS } from "./catalogue/privacy.ts";
import { REDIS_MUTATIONS } from "./catalogue/redis.ts";
import { REPLAY_MUTATIONS } from "./catalogue/replay.ts";
import { REPORT_MUTATIONS } from "./catalogue/reports.ts";
import { SESSION_MUTATIONS } from "./catalogue/sessions.ts";
import { SHOWN_CREDENTIAL_MUTATIONS } from "./catalogue/shown-credentials.ts";
import { SLOW_READER_MUTATIONS } from "./catalogue/slow-readers.ts";
import { TESTING_MUTATIONS } from "./catalogue/testing.ts";
import { WEBSOCKET_MUTATIONS } from "./catalogue/websocket.ts";
import { WINDOW_MUTATIONS } from "./catalogue/window.ts";
import type { Mutation } from "./mutation.ts";

/** Every protection whose loss must not go unnoticed. */
export const MUTATIONS: readonly Mutation[] = [
  ...ENVELOPE_MUTATIONS,
  ...ACCEPT_FROM_MUTATIONS,
  ...KEY_MUTATIONS,
  ...ISSUER_MUTATIONS,
  ...CREDENTIAL_MUTATIONS,
  ...SHOWN_CREDENTIAL_MUTATIONS,
  ...WEBSOCKET_MUTATIONS,
  ...INFLOW_MUTATIONS,
  ...OWNERSHIP_MUTATIONS,
  ...ADMIN_MUTATIONS,
  ...HEARTBEAT_MUTATIONS,
  ...SLOW_READER_MUTATIONS,
  ...REPLAY_MUTATIONS,
  ...SESSION_MUTATIONS,
  ...WINDOW_MUTATIONS,
  ...IDEMPOTENCY_MUTATIONS,
  ...REDIS_MUTATIONS,
  ...CLUSTER_MUTATIONS,
  ...LAPSE_MUTATIONS,
  ...CLUSTER_NODE_MUTATIONS,
  ...GATEWAY_MUTATIONS,
  ...HTTP_MUTATIONS,
  ...KUBERNETES_MUTATIONS,
  ...HTTP_CONNECTION_MUTATIONS,
  ...PACKAGE_MUTATIONS,
  ...TESTING_MUTATIONS,
  ...PRIVACY_MUTATIONS,
  ...REPORT_MUTATIONS,
  ...CONNECTOR_MUTATIONS,
  ...CONNECTOR_END_MUTATIONS,
  ...CONNECTOR_INIT_MUTATIONS,
  ...CONNECTOR_LYING_RELAY_MUTATIONS,
  ...CONNECTOR_OUTGOING_MUTATIONS,
];
