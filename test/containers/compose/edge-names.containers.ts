import { randomBytes } from "node:crypto";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, test } from "@jest/globals";
import type { ServiceName } from "relay-protocol/contract/surface.ts";
import { GenericContainer, getContainerRuntimeClient, type StartedTestContainer, Wait } from "testcontainers";
import { until } from "../../support/until.ts";
import { asEdge, EDGE_IMAGE } from "../support/edge.ts";

/** How the edge finds the services, and is found: no relay runs behind it. */

const SERVICES = fileURLToPath(new URL("../support/named-services.mjs", import.meta.url));
const SERVICE_NAMES: readonly ServiceName[] = ["gateway", "ws-connector", "ops-reporting"];
const PORT = 8080;
const WITHOUT_IPV6 = {
  defaultAction: "SCMP_ACT_ALLOW",
  syscalls: [
    { names: ["socket"], action: "SCMP_ACT_ERRNO", errnoRet: 97, args: [{ index: 0, value: 10, op: "SCMP_CMP_EQ" }] },
  ],
};

/** A container whose name server is another than the engine's. */
class AskingContainer extends GenericContainer {
  asking(nameServer: string): this {
    this.hostConfig.Dns = [nameServer];
    return this;
  }
}

/** Services behind a name server of their own. @param network the engine's default one, unless it is named. */
async function startServices(family: 4 | 6, names: readonly string[], network?: string): Promise<StartedTestContainer> {
  const services = new GenericContainer("node:24-slim")
    .withCopyFilesToContainer([{ source: SERVICES, target: "/named-services.mjs" }])
    .withCommand(["node", "/named-services.mjs", String(family), ...names])
    .withWaitStrategy(Wait.forLogMessage("answers at"));
  return await (network === undefined ? services : services.withNetworkMode(network)).start();
}

function edgeThatAsks(nameServer: string): AskingContainer {
  return asEdge(new AskingContainer(EDGE_IMAGE)).asking(nameServer).withExposedPorts(PORT);
}

/** A network with both families, of which the engine makes none by itself. */
async function networkWithIPv6(): Promise<AsyncDisposable & { readonly name: string }> {
  const { container } = await getContainerRuntimeClient();
  const name = `relay-test-${randomBytes(4).toString("hex")}`;
  const Subnet = `fd${randomBytes(5)
    .toString("hex")
    .replace(/(.{2})(.{4})(.{4})/, "$1:$2:$3")}::/64`;
  const network = await container.dockerode.createNetwork({
    Name: name,
    EnableIPv6: true,
    IPAM: { Config: [{ Subnet }] },
  });
  return { name, [Symbol.asyncDispose]: async () => void (await network.remove()) };
}

test("the edge asks the name server of its container, and says once which services it does not know", async () => {
  await using services = await startServices(4, ["gateway", "ops-reporting"]);
  const log: string[] = [];
  await using edge = await edgeThatAsks(services.getIpAddress("bridge"))
    .withLogConsumer((output) => createInterface(output).on("line", (line) => log.push(line)))
    .start();
  const url = `http://127.0.0.1:${edge.getMappedPort(PORT)}`;
  const said = () => log.filter((line) => SERVICE_NAMES.some((name) => line.includes(name)));
  await until("it has looked", () => said().length > 0);
  expect((await fetch(`${url}/health`)).status).toBe(200);
  expect((await fetch(`${url}/api/ops/traffic-daily`)).status).toBe(200);
  expect((await fetch(`${url}/ws`)).status).toBe(503);
  expect(said()).toEqual([expect.stringContaining("ws-connector")]);
}, 60_000);

test("the edge serves IPv6 clients, and reaches services that have IPv6 addresses alone", async () => {
  await using network = await networkWithIPv6();
  await using services = await startServices(6, SERVICE_NAMES, network.name);
  await using edge = await edgeThatAsks(services.getIpAddress(network.name)).withNetworkMode(network.name).start();
  const { container } = await getContainerRuntimeClient();
  const { NetworkSettings } = await container.getById(edge.getId()).inspect();
  const address = NetworkSettings.Networks[network.name]?.GlobalIPv6Address;
  const program = `fetch("http://[${address}]:${PORT}/health").then((answer) => answer.text()).then(console.log)`;
  const { output } = await services.exec(["node", "-e", program]);
  expect(output.trim()).toBe("here");
}, 60_000);

test("the edge starts where the kernel has no IPv6", async () => {
  await using services = await startServices(4, SERVICE_NAMES);
  await using edge = await edgeThatAsks(services.getIpAddress("bridge"))
    .withSecurityOpt(`seccomp=${JSON.stringify(WITHOUT_IPV6)}`)
    .start();
  const answer = await fetch(`http://127.0.0.1:${edge.getMappedPort(PORT)}/health`);
  expect(answer.status).toBe(200);
}, 60_000);
