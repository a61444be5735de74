// A whole agent: Node 22 or later, no package. It signs with Ed25519.
// With TARGET_ID and RELAY_API_KEY it requests a session and ends with the decision. Without TARGET_ID it waits for one request,
// approves it (DECISION=reject: rejects it), replies, and ends.
import { createHash, createPrivateKey, randomUUID, sign } from "node:crypto";
import { readFileSync } from "node:fs";

const { RELAY, KEY_FILE, RELAY_API_KEY, TARGET_ID, HOLD_MS, DECISION = "approve" } = process.env;
const fail = (text) => {
  console.error(text);
  process.exit(1);
};
if (typeof WebSocket === "undefined") fail(`agent.mjs needs Node 22 or later; this is Node ${process.versions.node}.`);
const needed = { RELAY, KEY_FILE, ...(TARGET_ID && { RELAY_API_KEY }) };
const unset = Object.keys(needed).filter((name) => !needed[name]);
const keyless = unset.includes("RELAY_API_KEY")
  ? " Without an API key, send a signed session.request on the websocket instead."
  : "";
if (unset.length > 0) fail(`Set ${unset.join(", ")}.${keyless}`);
if (!["approve", "reject"].includes(DECISION)) fail("DECISION is approve or reject.");

/** private_key is the 32-byte seed in base64url. A key that the relay lists has a key_id, any other a credential. */
const { agent_id: AGENT_ID, private_key: PRIVATE_KEY, key_id, credential } = keyFile();
const KEY_ID = credential === undefined ? key_id : `jkt-${thumbprint(credential)}`;
if (!AGENT_ID || !PRIVATE_KEY || !KEY_ID) fail("KEY_FILE needs agent_id, private_key, and key_id or credential.");

function keyFile() {
  try {
    return JSON.parse(readFileSync(KEY_FILE, "utf8").replace("\uFEFF", ""));
  } catch ({ code }) {
    return fail(`KEY_FILE cannot be read as JSON${code ? ` (${code})` : ""}.`);
  }
}

/** RFC 7638, of the agent's key in a credential. */
function thumbprint(token) {
  const { cnf } = JSON.parse(Buffer.from(token.split(".")[1], "base64url"));
  return createHash("sha256").update(`{"crv":"Ed25519","kty":"OKP","x":"${cnf.jwk.x}"}`).digest("base64url");
}

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

/** The seed is 32 bytes in base64url, that of the test vector too. */
function signature(text, seed) {
  const der = Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), Buffer.from(seed, "base64url")]);
  const key = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
  return sign(null, Buffer.from(text), key).toString("base64url");
}

/** What a decision says of its request, for a receipt: SHA-256 of its canonical text with sig. */
function digest(request) {
  const text = `${canonical(request).slice(0, -1)},"sig":"${request.sig}"}`;
  return createHash("sha256").update(text).digest("base64url");
}

function envelope(type, fields = {}) {
  const unsigned = { id: randomUUID(), type, from: AGENT_ID, payload: {}, ts: Date.now(), key_id: KEY_ID, ...fields };
  return JSON.stringify({ ...unsigned, sig: signature(canonical(unsigned), PRIVATE_KEY) });
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** One request. It is sent again a few times, after Retry-After, where the relay allows it. */
async function ask(path, init, tries = 5) {
  const response = await fetch(RELAY + path, init);
  const body = await response.json();
  if (response.ok) return body;
  const wait = Number(response.headers.get("retry-after"));
  if (wait === 0 || tries === 1) fail(`${response.status} ${body.code}: ${body.hint}`);
  await pause(wait * 1000);
  return await ask(path, init, tries - 1);
}
const json = { "content-type": "application/json" };

// 1. Do I sign as the relay expects?
const manifest = await ask("/.well-known/signing-manifest.json");
const vector = manifest.test_vectors.find(({ alg }) => alg === "ed25519");
if (canonical(vector.envelope) !== vector.canonical) fail("my canonical text is wrong");
if (signature(vector.canonical, vector.key.private_key) !== vector.sig) fail("my signature is wrong");

// 2. Does the relay accept my key? A register is for the relay that is dialled, and presents the credential.
const url = manifest.websocket.urls[0];
const here = { relay: new URL(url).host };
const register = () => ({ payload: { ...here, ...(credential && { credential }) } });
const registerText = envelope("agent.register", register());
const test = await ask("/api/self-test", { method: "POST", headers: json, body: registerText });
console.log(`self-test: ${test.stage}`);

// 3. Come online and stay online.
const socket = new WebSocket(url);
const acks = new Map();
let requested;
const request = new Promise((done) => {
  requested = done;
});

/** Sends a signed envelope; resolves once the relay has accepted it. */
function submit(type, fields) {
  const text = envelope(type, fields);
  socket.send(text);
  return new Promise((accepted) => acks.set(JSON.parse(text).id, accepted));
}

await new Promise((registered) => {
  const check = "Check the address, any proxy, and that the edge serves the HTTP/2 websockets that it announces.";
  socket.addEventListener("error", () => fail(`The websocket ${socket.url} did not open, or was lost. ${check}`));
  socket.addEventListener("close", ({ code }) => fail(`The relay closed the connection: ${code}.`));
  socket.addEventListener("message", ({ data }) => {
    const frame = JSON.parse(data);
    if (frame.frame === "hello") {
      here.connection_id = frame.connection_id; // So nobody else can use what follows on another connection.
      submit("agent.register", register()).then(registered);
      const heartbeat = () => socket.send(envelope("agent.heartbeat", { payload: here }));
      setInterval(heartbeat, frame.limits.heartbeat_interval_ms).unref();
    } else if (frame.frame === "ack") {
      acks.get(frame.envelope_id)?.(frame);
      acks.delete(frame.envelope_id);
    } else if (frame.frame === "error") fail(`${frame.code}: ${frame.hint}`);
    else if (frame.frame === "deliver") {
      console.log(`${frame.envelope.type} from ${frame.envelope.from}`);
      if (frame.envelope.type === "session.request") requested(frame);
    }
  });
});

/** Decides on the first request, and replies to who asked. */
async function answer() {
  console.log("waiting for a request");
  const frame = await request;
  const to = frame.envelope.from;
  const payload = { session_id: frame.session_id, request_sha256: digest(frame.envelope) };
  const decided = await submit(`session.${DECISION}`, { to, payload });
  console.log(`session: ${decided.session_status}`);
  const task_id = frame.envelope.task_id ?? frame.envelope.id;
  const reply = await submit("message.reply", { to, task_id, payload: { message: `I ${DECISION} your request.` } });
  console.log(`reply: target ${reply.target_delivery.status}`);
}

/** Requests a session of the target, and waits for its decision. */
async function requestSession() {
  // 4. Wait, then check again: only now does the connection count as stable.
  const presence = `/api/onboarding/check-online?agent_id=${AGENT_ID}`;
  const { recovery } = await ask(presence);
  const holdMs = Number(HOLD_MS ?? recovery.liveness_contract.stability_hold_ms);
  console.log(`online; waiting ${holdMs / 1000} s, until the connection counts as stable`);
  await pause(holdMs);
  console.log(`after the hold: ${(await ask(presence)).status}`);

  // 5. Is the target online? Request a session.
  const target = await ask(`/api/onboarding/check-online?agent_id=${TARGET_ID}`);
  console.log(`target: ${target.status}`);
  const accepted = await ask("/v1/sessions/request", {
    method: "POST",
    headers: { ...json, "x-api-key": RELAY_API_KEY, "idempotency-key": randomUUID() },
    body: JSON.stringify({ from: AGENT_ID, to: TARGET_ID, purpose: "Agree on terms.", ttl_minutes: 5 }),
  });
  console.log(`delivered in realtime: ${accepted.target_delivery.can_deliver_realtime}`);
  if (!accepted.target_delivery.can_deliver_realtime) return;

  // 6. Wait for the decision, at most until the session expires.
  let session = await ask(`/sessions/${accepted.session_id}`);
  while (session.decided_at_iso === null && session.status !== "expired") {
    await pause(1000);
    session = await ask(`/sessions/${accepted.session_id}`);
  }
  console.log(`session: ${session.status}`);
}

await (TARGET_ID ? requestSession() : answer());
process.exit(0);
