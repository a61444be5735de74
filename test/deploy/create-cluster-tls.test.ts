import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { type AddressInfo, createServer, type Server } from "node:net";
import { join } from "node:path";
import { createServer as createTlsServer } from "node:tls";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { SELF_SIGNED } from "../../connector/test/self-signed.ts";
import { COMPILE_CACHE } from "../support/pod-process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";

const CREATE = fileURLToPath(new URL("../../deploy/redis/create-cluster.ts", import.meta.url));
const PASSWORD = "of-cluster-create";
let said: string;
let server: Server | undefined;
let creating: ChildProcess | undefined;

beforeEach(() => {
  said = "";
});
afterEach(async () => {
  creating?.kill();
  if (creating?.exitCode === null && creating.signalCode === null) await once(creating, "exit");
  server?.close();
});

/** Has the command make a cluster of six nodes, all of which are this server. */
async function create(of: Server, env: NodeJS.ProcessEnv = {}): Promise<void> {
  server = of.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const nodes = Array(6).fill(`localhost:${port}`).join();
  const REDIS_URL = `rediss-cluster://cluster-create:${PASSWORD}@${nodes}`;
  creating = spawn(process.execPath, [CREATE], { env: { ...COMPILE_CACHE, ...env, REDIS_URL }, stdio: "ignore" });
}

const hears = (chunk: Buffer) => {
  said += chunk.toString("latin1");
};

describe("create-cluster.ts, of nodes with TLS,", () => {
  test("logs in once the certificate holds", async () => {
    await using folder = await temporaryFolder();
    const authority = join(folder.path, "authority.pem");
    await writeFile(authority, SELF_SIGNED.cert);
    const terminating = createTlsServer(SELF_SIGNED, (socket) => socket.on("data", hears).on("error", () => {}));
    await create(terminating, { NODE_EXTRA_CA_CERTS: authority });
    await until("it logs in", () => said.includes(`AUTH cluster-create "${PASSWORD}"\r\n`));
  });

  test("says nothing where nobody vouches for the certificate", async () => {
    const terminating = createTlsServer(SELF_SIGNED, (socket) => socket.on("data", hears).on("error", () => {}));
    const refused = once(terminating, "tlsClientError");
    await create(terminating);
    await refused;
    expect(said).toBe("");
  });

  test("says nothing but the beginning of TLS to a node without", async () => {
    await create(createServer((socket) => socket.on("data", hears).on("error", () => {})));
    await until("it was called", () => said.length > 0);
    expect(said).not.toContain("AUTH");
    expect(said).not.toContain(PASSWORD);
  });
});
