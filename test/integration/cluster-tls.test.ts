import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import { SELF_SIGNED } from "../../connector/test/self-signed.ts";
import type { NodeRunner } from "../../deploy/local/cluster-node.ts";
import { freePorts } from "../../deploy/local/free-ports.ts";
import { redisProgram } from "../../deploy/local/redis-program.mjs";
import { ClusterRelay } from "../cluster/support/cluster-relay.ts";
import { HttpClient } from "../support/http.ts";
import { TestCluster } from "../support/redis-cluster.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { given, use } from "../support/use-relay.ts";

/** Whom the certificate names, and nodes by their hosts. */
const HOST = "localhost";

/** Nodes that services and each other reach by TLS; who looks at them does it without. */
class TlsCluster extends TestCluster {
  #ports: readonly number[] = [];
  #folder: Awaited<ReturnType<typeof temporaryFolder>> | undefined;

  constructor() {
    let nodes = 0;
    const command: NodeRunner["command"] = (_, settings) => [redisProgram(), ...settings, ...this.#tls(nodes++)];
    super({
      runner: {
        command,
        settings: { "cluster-announce-hostname": HOST, "cluster-preferred-endpoint-type": "hostname" },
        login: [],
      },
    });
  }

  /** Who vouches for the certificate: itself. */
  get authority(): string {
    return join((this.#folder as { path: string }).path, "certificate.pem");
  }

  override get url(): string {
    return `rediss-cluster://${this.#ports.map((port) => `${HOST}:${port}`).join()}`;
  }

  override async start(): Promise<void> {
    this.#ports = await freePorts(6);
    this.#folder = await temporaryFolder();
    await writeFile(this.authority, SELF_SIGNED.cert);
    await writeFile(`${this.authority}.key`, SELF_SIGNED.key);
    await super.start();
  }

  override async stop(): Promise<void> {
    await super.stop();
    await this.#folder?.[Symbol.asyncDispose]();
  }

  /** Settings of the nth node. */
  #tls(n: number): string[] {
    const settings = {
      "tls-port": `${this.#ports[n]}`,
      "tls-cluster": "yes",
      "tls-replication": "yes",
      "tls-auth-clients": "no",
      "tls-cert-file": this.authority,
      "tls-key-file": `${this.authority}.key`,
      "tls-ca-cert-file": this.authority,
    };
    return Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  }
}

class TlsRelay extends ClusterRelay {
  override readonly cluster = new TlsCluster();
}

const relay = use(new TlsRelay("alice", "bob-hmac"));
const trusting = () => ({ NODE_EXTRA_CA_CERTS: relay.cluster.authority });
const pod = given(() => relay.startProcess("ws-connector", trusting()));
const gateway = given(() => relay.startProcess("gateway", trusting()));

test("over rediss-cluster: agents reach each other, by websocket and over HTTP", async () => {
  const bob = await relay.online(pod, "bob-hmac");
  const alice = await relay.online(pod, "alice");
  const sent = relay.envelope("alice", "message.send", { to: "agent://bob-hmac", payload: {} });
  expect(await alice.ask(sent)).toMatchObject({ target_delivery: { can_deliver_realtime: true } });
  await bob.delivered(sent.id as string);

  const http = new HttpClient(relay.credentials("alice"));
  const body = { from: "agent://alice", to: "agent://bob-hmac", message: "hi" };
  const answer = await http.post(`${gateway.url}/v1/messages/send`, body);
  expect(answer.status).toBe(202);
  await bob.delivered(answer.body.envelope_id);
});

test("and a service that nobody told who vouches for the nodes is not ready", async () => {
  const stranger = await relay.startProcess("ops-reporting");
  expect((await fetch(`${stranger.url}/ready`)).status).toBe(503);
});
