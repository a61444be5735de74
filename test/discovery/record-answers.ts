import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Connector } from "agent-relay-connector";
import { readKeyFile } from "agent-relay-connector/key-file";
import type { Surface } from "relay-protocol/contract/surface.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import type { z } from "zod";
import { startRelay } from "../../deploy/local/relay.ts";
import {
  EXAMPLE_ENVELOPE_ID,
  EXAMPLE_SESSION_ID,
  EXAMPLE_TIME,
  RECORDED,
} from "../../services/gateway/src/discovery/examples.ts";
import { connectorIn, madePackages } from "../support/packages.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { put } from "./programs.ts";

/**
 * `node test/discovery/record-answers.ts`, after a change of an answer: writes the answers that openapi.json shows as
 * examples anew. They are those of a relay of its own, on which alice has sent bob a message and agreed on a session with him.
 */
const FILE = new URL("../../services/gateway/src/discovery/recorded-answers.json", import.meta.url);
/** They have examples that are written. */
const WRITTEN: readonly Surface[] = [SURFACES.checkOnline, SURFACES.readSession, SURFACES.readCredential];
const TEXT_CHARACTERS = 40;
const RECORD_MEMBERS = 2;
const WORD = /^\S{1,20}$/;

type Json = unknown;
type Members = Readonly<Record<string, Json>>;
type Path = readonly (string | number)[];

const packages = await madePackages();
const relay = await startRelay({ environment: { RELAY_PACKAGES_DIR: packages } });
const agents = relay.agents as NonNullable<typeof relay.agents>;
const host = new URL(relay.url).host;

async function request(path: string, body: object): Promise<Record<string, string>> {
  const headers = { "content-type": "application/json", "x-api-key": agents.api_key };
  const answer = await fetch(relay.url + path, { method: "POST", headers, body: JSON.stringify(body) });
  return (await answer.json()) as Record<string, string>;
}

/** Ends when bob has approved the session. */
async function haveTraffic(bob: Connector): Promise<string> {
  await bob.start();
  const ends = { from: agents.alice.agent_id, to: agents.bob.agent_id };
  await request(SURFACES.sendMessage.path, { ...ends, message: "Hello, Bob." });
  const { session_id = "" } = await request(SURFACES.requestSession.path, { ...ends, purpose: "Agree on terms." });
  for await (const delivery of bob) {
    if (delivery.type !== "session.request") continue;
    await bob.approve(session_id, ends.from);
    break;
  }
  await request(SURFACES.submitFeedback.path, { surface: "checkOnline", sentiment: "helpful", category: "docs" });
  return session_id;
}

/** What is asked with: guides for the session, the last of the relay's packages where a file is asked for. */
async function addressOf({ path, group }: Surface, session_id: string): Promise<string> {
  const query = { from: agents.alice.agent_id, target_agent_id: agents.bob.agent_id, session_id };
  const { file } = await connectorIn(packages);
  return relay.url + path.replace("{file}", file) + (group === "guides" ? `?${new URLSearchParams(query)}` : "");
}

async function answerAt(surface: Surface, url: string): Promise<Json> {
  const answer = await fetch(url);
  if (surface.media === "application/json") return cut(surface.response, JSON.parse(neutral(await answer.text())));
  if (/^(?:text|image|application\/xml)/.test(surface.media)) return beginning(neutral(await answer.text()));
  // Of bytes those that say what they are.
  return Buffer.from(await answer.arrayBuffer())
    .subarray(0, 4)
    .toString("latin1");
}

/** No id and no time of the recorded relay, and addresses that the gateway replaces by its own. */
function neutral(text: string): string {
  return text
    .replaceAll(`http://${host}`, RECORDED.baseUrl)
    .replaceAll(`ws://${host}`, RECORDED.wsUrl)
    .replaceAll(host, new URL(RECORDED.baseUrl).host)
    .replaceAll('"scheme":"http"', '"scheme":"https"')
    .replace(/\bses_[a-z0-9]{26}/g, EXAMPLE_SESSION_ID)
    .replace(/\benv_[a-z0-9]{26}/g, EXAMPLE_ENVELOPE_ID)
    .replace(/\b1\d{12}\b/g, String(EXAMPLE_TIME))
    .replace(/\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, new Date(EXAMPLE_TIME).toISOString());
}

/** Whole words: a part of an address would be another one. */
function beginning(text: string): string {
  if (text.length <= TEXT_CHARACTERS || /^\S*\/\S*$/.test(text)) return text;
  return `${text.slice(0, TEXT_CHARACTERS).replace(/\s+\S*$/, "")} …`;
}

/**
 * Of a list one element remains, of an inner one only a word; of a record two members; of an object that may have any members
 * those that it must have; of a text its beginning: where the schema leaves it open.
 */
function cut(schema: z.ZodType, answer: Json, path: Path = []): Json {
  const part = at(answer, path);
  const takes = (other: Json) => schema.safeParse(replaced(answer, path, other)).success;
  if (typeof part === "string") return takes(beginning(part)) ? replaced(answer, path, beginning(part)) : answer;
  if (typeof part !== "object" || part === null) return answer;
  const isInner = path.length > 1;
  const shorter = Array.isArray(part) ? shorterList(part, isInner, takes) : shorterObject(part as Members, takes);
  const rest = replaced(answer, path, shorter);
  return Object.keys(shorter).reduce((whole, name) => cut(schema, whole, [...path, name]), rest);
}

function shorterList(list: Json[], isInner: boolean, takes: (other: Json) => boolean): Json[] {
  const isKept = !isInner || WORD.test(String(list[0]));
  return takes([]) ? list.slice(0, isKept ? 1 : 0) : list;
}

function shorterObject(members: Members, takes: (other: Json) => boolean): Members {
  const names = Object.keys(members);
  const isOpen = names.length > 0 && takes({ ...members, "any other": members[names[0] as string] });
  if (!isOpen) return members;
  const without = (name: string) => Object.fromEntries(Object.entries(members).filter(([other]) => other !== name));
  const needed = names.filter((name) => !takes(without(name)));
  const kept = needed.length > 0 ? needed : names.slice(0, RECORD_MEMBERS);
  return Object.fromEntries(kept.map((name) => [name, members[name]]));
}

function at(value: Json, path: Path): Json {
  return path.reduce((inner, name) => (inner as Record<string, Json>)[name], value);
}

function replaced(value: Json, path: Path, part: Json): Json {
  const [name, ...rest] = path;
  if (name === undefined) return part;
  const inner = replaced((value as Record<string, Json>)[name], rest, part);
  return Array.isArray(value) ? value.with(Number(name), inner) : { ...(value as object), [name]: inner };
}

await using folder = await temporaryFolder();
const key = await put(folder.path, "bob.json", JSON.stringify(agents.bob));
const bob = new Connector({ url: relay.url, ...(await readKeyFile(join(folder.path, key))) });
const sessionId = await haveTraffic(bob);
const recorded = (Object.entries(SURFACES) as [string, Surface][]).filter(
  ([, surface]) => surface.method === "GET" && !WRITTEN.includes(surface),
);
const lines: string[] = [];
for (const [id, surface] of recorded) {
  const answer = await answerAt(surface, await addressOf(surface, sessionId));
  lines.push(`${JSON.stringify(id)}: ${JSON.stringify(answer)}`);
}
await bob.close();
await relay.stop();
await writeFile(FILE, `{\n${lines.join(",\n")}\n}\n`);
