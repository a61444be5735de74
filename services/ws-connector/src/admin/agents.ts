import { ISSUER_PATTERN } from "relay-protocol/wire/credential.ts";
import { KEY_ID_PATTERN } from "relay-protocol/wire/envelope.ts";
import { AdminError, type AdminRoute, adminRoute } from "relay-runtime/admin/admin-server.ts";
import type { AuditLog } from "relay-runtime/audit-log.ts";
import type { KeyStore } from "relay-runtime/key-store.ts";
import type { PrincipalAgentsReader, SeenAgent } from "relay-window/limits/principal-agents.ts";
import { type AgentLimits, type Principal, principalNameOf, principalOf } from "relay-window/limits/principals.ts";
import { z } from "zod";

export interface AgentsParts {
  readonly settings: AgentLimits;
  readonly keys: KeyStore;
  readonly agents: PrincipalAgentsReader;
  readonly audit: AuditLog;
}

const ONE_OF = "must be given, or else issuer: one of both";
const Query = z
  .strictObject({
    key: z.string().regex(KEY_ID_PATTERN).optional(),
    issuer: z.string().regex(ISSUER_PATTERN).optional(),
  })
  .refine(({ key, issuer }) => (key === undefined) !== (issuer === undefined), { path: ["key"], error: ONE_OF });

/** The principal that the operator asks about. */
interface Holder {
  readonly principal: Principal;
  /** The principal's agents that the keys file lists one by one. */
  readonly listed: readonly string[];
  /** False if the principal may have other agents. Redis does not count agents without a limit. */
  readonly isCounted: boolean;
}

/** The agents of a key or issuer in the whole process window, last seen first. */
export function agentsRoute(parts: AgentsParts): AdminRoute {
  const { agents, audit } = parts;
  return adminRoute("GET", "/admin/agents", Query, async (query) => {
    const holder = holderOf(parts, query);
    // An unknown id may be a secret that the operator typed by mistake, so the audit log does not get it.
    if (holder === undefined) {
      audit.write({ event: "admin_read", read: "agents" });
      throw new AdminError("not_in_force");
    }
    const name = principalNameOf(holder.principal);
    audit.write({ event: "admin_read", read: "agents", ...name });
    const found = await agents.read(holder.principal, holder.listed);
    return {
      ...name,
      total: found.total,
      truncated: found.total > found.agents.length,
      complete: holder.isCounted && found.missing.length === 0,
      unavailable_partitions: found.missing,
      agents: found.agents.map(shown),
    };
  });
}

function holderOf({ settings, keys }: AgentsParts, { key, issuer }: z.output<typeof Query>): Holder | undefined {
  const now = Date.now();
  const { ring } = keys;
  const listed = issuer === undefined ? ring.agentsOfKey(key ?? "", now) : ring.agentsOfIssuer(issuer, now);
  if (listed === undefined) return undefined;
  const isCounted =
    issuer === undefined
      ? settings.agentsPerKey > 0 || !ring.hasNamespace(key ?? "", now)
      : settings.agentsPerIssuer > 0;
  return { principal: principalOf({ keyId: key ?? "", issuer }), listed, isCounted };
}

function shown({ agent, presence: { status, isCongested, lastSeen, onlineSince } }: SeenAgent): object {
  return {
    agent,
    presence: status,
    congested: isCongested,
    last_seen: iso(lastSeen),
    online_since: iso(onlineSince),
  };
}

function iso(time: number | null): string | null {
  return time === null ? null : new Date(time).toISOString();
}
