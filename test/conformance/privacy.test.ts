import { expect, test } from "@jest/globals";
import { SURFACES, type SurfaceId } from "relay-protocol/contract/surfaces.ts";
import { given } from "../support/use-relay.ts";
import { conformingRelay } from "./conforming.ts";

const relay = conformingRelay();
const pod = given(() => relay.startWhole());

/** Reports and guides, and what else speaks of all agents. */
const REPORTS = (Object.keys(SURFACES) as SurfaceId[]).filter((id) => {
  const { method, service, path } = SURFACES[id];
  return (
    method === "GET" && (service === "ops-reporting" || ["/ready", "/api/onboarding/online-agents"].includes(path))
  );
});

test.each(REPORTS)("The report %s says what it holds back, and in words whom it names", async (id) => {
  const { privacy } = (await (await fetch(pod.url + SURFACES[id].path)).json()) as { privacy: object };
  expect(privacy).toEqual({
    aggregate_only: true,
    raw_ip_addresses: false,
    user_agents: false,
    payloads: false,
    api_keys: false,
    signatures: false,
    identities: expect.any(String),
  });
});
