import { once } from "node:events";
import { chmod, writeFile } from "node:fs/promises";
import https from "node:https";
import { join } from "node:path";
import tls from "node:tls";
import { fileURLToPath } from "node:url";
import { expect, test } from "@jest/globals";
import { GenericContainer, Wait } from "testcontainers";
import { RENEWED, SELF_SIGNED } from "../../../connector/test/self-signed.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { until } from "../../support/until.ts";
import { asEdge, EDGE_IMAGE } from "../support/edge.ts";

/** The edge of docker-compose.tls.yml alone: no service runs behind it. */

const EDGE_TLS_CONF = fileURLToPath(new URL("../../../deploy/docker/edge-tls.conf", import.meta.url));
const CA = [SELF_SIGNED.cert, RENEWED.cert];
const PORT = 8443;

async function write(folder: string, { cert, key }: { readonly cert: string; readonly key: string }): Promise<void> {
  await writeFile(join(folder, "tls.crt"), cert);
  await writeFile(join(folder, "tls.key"), key);
}

/** What it shows to a client that offers these protocols. */
async function handshake(port: number, protocols: string[]): Promise<{ raw: Buffer; protocol: string | false | null }> {
  const socket = tls.connect({ host: "localhost", port, ca: CA, servername: "localhost", ALPNProtocols: protocols });
  await once(socket, "secureConnect");
  const found = { raw: socket.getPeerCertificate().raw, protocol: socket.alpnProtocol };
  socket.destroy();
  return found;
}

test("the edge speaks HTTP/2 and HTTP/1.1 over TLS, and shows a renewed certificate after a reload", async () => {
  await using folder = await temporaryFolder();
  await chmod(folder.path, 0o755);
  await write(folder.path, SELF_SIGNED);
  await using edge = await asEdge(new GenericContainer(EDGE_IMAGE), [
    { source: EDGE_TLS_CONF, target: "/etc/nginx/edge/tls.conf", mode: "ro" },
    { source: folder.path, target: "/run/tls", mode: "ro" },
  ])
    .withExposedPorts(PORT)
    .withWaitStrategy(Wait.forListeningPorts())
    .start();
  const port = edge.getMappedPort(PORT);
  const { raw, protocol } = await handshake(port, ["h2", "http/1.1"]);
  expect(protocol).toBe("h2");
  expect((await handshake(port, ["http/1.1"])).protocol).toBe("http/1.1");
  const [answer] = await once(https.get({ host: "localhost", port, path: "/health", ca: CA }), "response");
  answer.resume();
  expect([answer.statusCode, answer.headers["content-type"]]).toEqual([503, "application/problem+json"]);
  await write(folder.path, RENEWED);
  await edge.exec(["nginx", "-s", "reload"]);
  await until("the new one is shown", async () => !(await handshake(port, ["h2"])).raw.equals(raw));
});
