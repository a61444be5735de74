import type { ServiceName, Surface } from "protocol/contract/surface.ts";
import { SURFACES } from "protocol/contract/surfaces.ts";
import type { AdminClient } from "../support/admin.ts";
import { TOLD } from "./marked.ts";

/** What stands in the places of a path. */
interface Places {
  readonly sessionId: string;
  readonly file: string;
  readonly name: string;
}

/** Every read of a service, as a client asks for it. */
export function readsOf(service: ServiceName, { sessionId, file, name }: Places): string[] {
  const reads = Object.values<Surface>(SURFACES).filter(
    (surface) => surface.method === "GET" && (surface.service === service || surface.service === "each"),
  );
  const query = (surface: Surface) => (surface.path.includes("check-online") ? "?agent_id=agent://bob-hmac" : "");
  const path = (surface: Surface) =>
    surface.path.replace("{session_id}", sessionId).replace("{file}", file).replace("{name}", name);
  return reads.map((surface) => path(surface) + query(surface));
}

/** With the operator's key, and without it. @returns the answers. */
export async function askAsOperator(admin: AdminClient): Promise<string[]> {
  const told: string[] = [];
  const paths = ["counts", "noisiest", "agents?issuer=acme", `agents?key=${TOLD.query}`, TOLD.query];
  for (const path of paths) told.push(JSON.stringify(await admin.get(`/admin/${path}`)));
  told.push(JSON.stringify(await admin.disconnect(TOLD.query)));
  const stranger = await fetch(`${admin.url}/${TOLD.query}`, {
    headers: { authorization: `Bearer ${TOLD.wrongApiKey}` },
  });
  return [...told, await stranger.text()];
}
