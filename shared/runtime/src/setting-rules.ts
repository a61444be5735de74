import { SURFACES, WEBSOCKET_PATH } from "relay-protocol/contract/surfaces.ts";

/** Rules of the texts of settings (`settings-catalogue.ts`). */

export function isPlainUrl(value: string, protocols: readonly string[]): boolean {
  const url = URL.parse(value);
  // The scheme of other settings is made from its letters.
  if (url === null || !protocols.includes(url.protocol) || !value.startsWith(url.protocol)) return false;
  // A password may contain a slash: then the @ after it is in what looks like the path.
  return !/[@?#]|\/$/.test(value);
}

/** A host as `URL.host` spells it, so that equal hosts are equal texts. Only a default port may stand there, too. */
export function isHost(text: string): boolean {
  const host = URL.parse(`wss://${text}`)?.host;
  return /^[a-z0-9.:[\]-]+$/.test(text) && (text === host || text === `${host}:443`);
}

/** It stands in texts of lines and in JSON: nothing but the characters of an address. Source: RFC 3986, section 2. */
export function isContact(value: string): boolean {
  if (!/^(?:https:\/\/|mailto:)[A-Za-z0-9._~:/?#[\]@!$&()*+,;=%-]{1,200}$/.test(value)) return false;
  const url = URL.parse(value);
  if (url?.protocol === "mailto:") return /^[^@/]+@[^@/]+$/.test(url.pathname);
  return url !== null && url.hostname !== "" && url.username === "" && url.password === "";
}

export function isOriginOrAny(value: string): boolean {
  return value === "any" || URL.parse(value)?.origin === value;
}

/** The exporter adds the path of traces itself. */
export function isCollector(url: string): boolean {
  return isPlainUrl(url.replace(/\/$/, ""), ["http:", "https:"]) && !/\/v1\/traces\/?$/.test(url);
}

export function isFreePath(path: string): boolean {
  if (!/^(?:\/[A-Za-z0-9_-]+)+$/.test(path) || path === WEBSOCKET_PATH) return false;
  return !Object.values(SURFACES).some((surface) =>
    [surface.path, ...surface.aliases].some((taken) => taken === path || path.startsWith(`${taken.split("/{")[0]}/`)),
  );
}
