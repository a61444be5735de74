import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import https from "node:https";
import net from "node:net";
import { join } from "node:path";
import tls from "node:tls";
import { expect, test } from "@jest/globals";
import { WebSocket } from "ws";
import { RENEWED, SELF_SIGNED } from "../../connector/test/self-signed.ts";
import { startRelay } from "../../deploy/local/relay.ts";
import type { Frame } from "../support/agent.ts";
import { freePort } from "../support/free-port.ts";
import { scrape } from "../support/http.ts";
import { SERVICES } from "../support/relay.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";
import { given, useRelay } from "../support/use-relay.ts";

/** TLS without an edge: RELAY_TLS_CERT_FILE and RELAY_TLS_KEY_FILE. */

const HOST = "localhost";
const CA = [SELF_SIGNED.cert, RENEWED.cert];

const relay = useRelay("alice", "bob-hmac");
const folder = given(async () => {
  const made = await temporaryFolder();
  relay.defer(() => made[Symbol.asyncDispose]());
  await write(made.path, SELF_SIGNED);
  return made;
});
const metricsPort = given(async () => ({ port: String(await freePort()) }));
const whole = given(() => relay.startWhole({ ...settingsFor(folder.path), METRICS_PORT: metricsPort.port }));

function settingsFor(path: string) {
  return { HOST, RELAY_TLS_CERT_FILE: join(path, "tls.crt"), RELAY_TLS_KEY_FILE: join(path, "tls.key") };
}

async function write(path: string, { cert, key }: { readonly cert: string; readonly key: string }): Promise<void> {
  await writeFile(join(path, "tls.key"), key);
  await writeFile(join(path, "tls.crt"), cert);
}

async function get(path: string): Promise<Frame> {
  const [answer] = await once(https.get({ host: HOST, port: whole.port, path, ca: CA }), "response");
  let text = "";
  for await (const chunk of answer) text += chunk;
  return JSON.parse(text);
}

/** The certificate that the server shows now. */
async function shown(): Promise<Buffer> {
  const socket = tls.connect({ host: HOST, port: whole.port, ca: CA, servername: HOST });
  await once(socket, "secureConnect");
  const { raw } = socket.getPeerCertificate();
  socket.destroy();
  return raw;
}

class Agent {
  readonly frames: Frame[] = [];
  readonly name: string;
  readonly socket: WebSocket;

  constructor(name: string) {
    this.name = name;
    this.socket = new WebSocket(`wss://${HOST}:${whole.port}/ws`, { ca: CA });
    this.socket.on("message", (data: Buffer) => this.frames.push(JSON.parse(data.toString())));
  }

  async online(): Promise<this> {
    await once(this.socket, "open");
    const { id } = this.send("agent.register");
    await until("it is registered", () =>
      this.frames.some(({ frame, envelope_id }) => frame === "ack" && envelope_id === id),
    );
    return this;
  }

  send(type: string, fields: object = {}): Frame {
    const envelope = relay.envelope(this.name, type, fields as Frame);
    this.socket.send(JSON.stringify(envelope));
    return envelope;
  }

  get delivered(): string[] {
    return this.frames.filter(({ frame }) => frame === "deliver").map(({ envelope }) => envelope.id);
  }
}

test("names addresses of https and wss, and answers over TLS 1.2 and later alone", async () => {
  expect(await get("/health")).toMatchObject({ ok: true });
  const manifest = await get("/.well-known/agent.json");
  expect(JSON.stringify(manifest)).toContain(`https://${HOST}:${whole.port}`);
  expect(JSON.stringify(manifest)).toContain(`wss://${HOST}:${whole.port}/ws`);
  const old = tls.connect({ host: HOST, port: whole.port, ca: CA, minVersion: "TLSv1", maxVersion: "TLSv1.1" });
  const [error] = await once(old, "error");
  expect(error.code).toMatch(/^ERR_SSL/);
});

test("shows a certificate that was renewed to whoever comes next; connections stay, and nothing on them is lost", async () => {
  const [alice, bob] = await Promise.all([new Agent("alice").online(), new Agent("bob-hmac").online()]);
  const before = await shown();
  const sent: string[] = [];
  const send = () => sent.push(alice.send("message.send", { to: "agent://bob-hmac", payload: {} }).id);
  const traffic = setInterval(send, 5);
  await until("there is traffic", () => bob.delivered.length > 10);
  await write(folder.path, RENEWED);
  await until("the new one is shown", async () => !(await shown()).equals(before));
  const soFar = bob.delivered.length;
  await until("traffic goes on", () => bob.delivered.length > soFar + 10);
  clearInterval(traffic);
  await until("all is delivered", () => bob.delivered.length === sent.length);
  expect(bob.delivered).toEqual(sent);
  expect([alice.socket.readyState, bob.socket.readyState]).toEqual([WebSocket.OPEN, WebSocket.OPEN]);
  for (const { socket } of [alice, bob]) socket.terminate();
});

test("the metrics of each service say when the certificate that is shown ends", async () => {
  const end = Date.parse(new X509Certificate(await shown()).validTo) / 1000;
  const { value } = await scrape(`http://${HOST}:${metricsPort.port}/metrics`);
  for (const service of SERVICES) expect(value("relay_certificate_end_time_seconds", { service })).toBe(end);
});

test("a client that speaks no TLS gets no answer, and harms nobody", async () => {
  const plain = net.connect({ host: HOST, port: whole.port });
  plain.write("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
  plain.on("error", () => {});
  await once(plain, "close");
  expect(await get("/health")).toMatchObject({ ok: true });
});

test("one file alone refuses the start", async () => {
  const { RELAY_TLS_CERT_FILE } = settingsFor(folder.path);
  await expect(startRelay({ environment: { ...relay.environment, RELAY_TLS_CERT_FILE } })).rejects.toThrow(
    "RELAY_TLS_CERT_FILE needs RELAY_TLS_KEY_FILE",
  );
});
