// A whole agent in one file: registers as agent://bob, stays online, prints what it is sent. It uses Node 22 or later and
// no package; nothing here is the relay's own code. `npm run listen` runs it with the development key of `npm start`.
//
//   RELAY_URL=http://127.0.0.1:8080 AGENT_KEYS=.local/dev-agents.json node examples/listen.mjs

import { createPrivateKey, randomUUID, sign } from "node:crypto";
import { readFileSync } from "node:fs";

if (typeof WebSocket === "undefined") {
  console.error(`This agent needs Node 22 or later; this is ${process.version}. \`npm run listen\` brings its own.`);
  process.exit(1);
}

const base = process.env.RELAY_URL || "http://127.0.0.1:8080";
const url = `${base.replace(/^http/, "ws").replace(/\/$/, "")}/ws`;
const { bob } = JSON.parse(readFileSync(process.env.AGENT_KEYS ?? ".local/dev-agents.json", "utf8"));
const der = Buffer.concat([
  Buffer.from("302e020100300506032b657004220420", "hex"),
  Buffer.from(bob.private_key, "base64url"),
]);
const key = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
/** What a key that the relay does not list is registered with. */
const presented = bob.credential ? { credential: bob.credential } : {};

/** RFC 8785: no white space, members sorted by name, at every depth. */
function jcs(value) {
  if (Array.isArray(value)) return `[${value.map(jcs).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const names = Object.keys(value).sort();
  return `{${names.map((name) => `${JSON.stringify(name)}:${jcs(value[name])}`).join(",")}}`;
}

/** The canonical text: eight members in this order, absent ones left out. */
const SIGNING_ORDER = ["id", "type", "from", "to", "task_id", "payload", "ts", "key_id"];
function canonical(envelope) {
  const names = SIGNING_ORDER.filter((name) => envelope[name] !== undefined);
  return `{${names.map((name) => `"${name}":${jcs(envelope[name])}`).join(",")}}`;
}

function signed(fields) {
  const envelope = { id: randomUUID(), payload: {}, ts: Date.now(), from: bob.agent_id, key_id: bob.key_id, ...fields };
  const sig = sign(null, Buffer.from(canonical(envelope)), key).toString("base64url");
  return JSON.stringify({ ...envelope, sig });
}

const socket = new WebSocket(url);
let heartbeat;

socket.addEventListener("message", ({ data }) => {
  const frame = JSON.parse(data);
  if (frame.frame === "hello") {
    // Who sees these at another relay, or later, has nothing of them there.
    const here = { relay: new URL(url).host, connection_id: frame.connection_id };
    socket.send(signed({ type: "agent.register", payload: { ...here, ...presented } }));
    const beat = () => socket.send(signed({ type: "agent.heartbeat", payload: here }));
    heartbeat = setInterval(beat, frame.limits.heartbeat_interval_ms);
  } else if (frame.frame === "ack" && frame.type === "agent.register") {
    console.log(`${frame.presence.agent_id} is ${frame.presence.status}`);
  } else if (frame.frame === "deliver") {
    console.log(`${frame.envelope.from}: ${JSON.stringify(frame.envelope.payload)}`);
  } else if (frame.frame === "error") {
    console.error(`${frame.code}: ${frame.message} ${frame.hint}`);
  }
});
const check = "Check the address, any proxy, and that the edge serves the HTTP/2 websockets that it announces.";
socket.addEventListener("error", () => console.error(`The websocket ${url} did not open, or was lost. ${check}`));
socket.addEventListener("close", ({ code }) => {
  clearInterval(heartbeat);
  console.error(`closed with ${code}`);
  process.exitCode = 1;
});
