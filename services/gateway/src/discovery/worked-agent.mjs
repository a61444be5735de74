// A whole agent: Node 22 or later, no package. It signs with Ed25519.
import { createPrivateKey, randomUUID, sign } from "node:crypto";

const { RELAY, AGENT_ID, KEY_ID, PRIVATE_KEY, API_KEY, TARGET_ID, HOLD_MS } = process.env;

/** RFC 8785: no white space, members sorted by name, at every depth. */
function jcs(value) {
  if (Array.isArray(value)) return `[${value.map(jcs).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const names = Object.keys(value).sort();
  return `{${names.map((name) => `${JSON.stringify(name)}:${jcs(value[name])}`).join(",")}}`;
}

/** The canonical text: these eight members in this order, absent ones left out. */
const ORDER = ["id", "type", "from", "to", "task_id", "payload", "ts", "key_id"];
function canonical(envelope) {
  const names = ORDER.filter((name) => envelope[name] !== undefined);
  return `{${names.map((name) => `"${name}":${jcs(envelope[name])}`).join(",")}}`;
}

/** PRIVATE_KEY is the 32-byte seed in base64url; so is private_key of the test vector. */
function signature(text, seed) {
  const der = Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), Buffer.from(seed, "base64url")]);
  const key = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
  return sign(null, Buffer.from(text), key).toString("base64url");
}

function envelope(type, fields = {}) {
  const unsigned = { id: randomUUID(), type, from: AGENT_ID, payload: {}, ts: Date.now(), key_id: KEY_ID, ...fields };
  return JSON.stringify({ ...unsigned, sig: signature(canonical(unsigned), PRIVATE_KEY) });
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** One request. What may be sent again is sent again, a few times, after the time the relay names. */
async function ask(path, init, tries = 5) {
  const response = await fetch(RELAY + path, init);
  const body = await response.json();
  if (response.ok) return body;
  const wait = Number(response.headers.get("retry-after"));
  if (wait === 0 || tries === 1) throw new Error(`${response.status} ${body.code}: ${body.hint}`);
  await pause(wait * 1000);
  return await ask(path, init, tries - 1);
}
const json = { "content-type": "application/json" };

// 1. Does my signing agree with the relay's?
const manifest = await ask("/.well-known/signing-manifest.json");
const vector = manifest.test_vectors.find(({ alg }) => alg === "ed25519");
if (canonical(vector.envelope) !== vector.canonical) throw new Error("my canonical text is wrong");
if (signature(vector.canonical, vector.key.private_key) !== vector.sig) throw new Error("my signature is wrong");

// 2. Does the relay take my key?
const test = await ask("/api/self-test", { method: "POST", headers: json, body: envelope("agent.register") });
console.log(`self-test: ${test.stage}`);

// 3. Come online, and stay.
const socket = new WebSocket(manifest.websocket.urls[0]);
socket.addEventListener("close", ({ code }) => console.log(`closed with ${code}`));
await new Promise((registered, refused) => {
  socket.addEventListener("error", refused);
  socket.addEventListener("message", ({ data }) => {
    const frame = JSON.parse(data);
    if (frame.frame === "hello") {
      socket.send(envelope("agent.register"));
      setInterval(() => socket.send(envelope("agent.heartbeat")), frame.limits.heartbeat_interval_ms).unref();
    } else if (frame.frame === "ack" && frame.type === "agent.register") registered();
    else if (frame.frame === "error") refused(new Error(`${frame.code}: ${frame.hint}`));
    else if (frame.frame === "deliver") console.log(`${frame.envelope.type} from ${frame.envelope.from}`);
  });
});

// 4. Hold, then look again: only now is the connection stable.
const presence = `/api/onboarding/check-online?agent_id=${AGENT_ID}`;
const { recovery } = await ask(presence);
await pause(Number(HOLD_MS ?? recovery.liveness_contract.stability_hold_ms));
console.log(`after the hold: ${(await ask(presence)).status}`);

// 5. Is the target there? Then ask it for a session.
const target = await ask(`/api/onboarding/check-online?agent_id=${TARGET_ID}`);
console.log(`target: ${target.status}`);
const accepted = await ask("/v1/sessions/request", {
  method: "POST",
  headers: { ...json, "x-api-key": API_KEY, "idempotency-key": randomUUID() },
  body: JSON.stringify({ from: AGENT_ID, to: TARGET_ID, purpose: "Agree on terms.", ttl_minutes: 60 }),
});
console.log(`delivered in realtime: ${accepted.target_delivery.can_deliver_realtime}`);

// 6. What became of it?
let session = await ask(`/sessions/${accepted.session_id}`);
while (session.decided_at_iso === null && session.status !== "expired") {
  await pause(1000);
  session = await ask(`/sessions/${accepted.session_id}`);
}
console.log(`session: ${session.status}`);
socket.close();
