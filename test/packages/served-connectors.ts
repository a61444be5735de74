import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll } from "@jest/globals";
import { Connectors } from "relay-protocol/contract/packages.ts";
import { sharedByAll } from "../../connector/test/fixture.ts";
import { Stage } from "../../connector/test/kit.ts";
import { connectorIn, madePackages } from "../support/packages.ts";
import { serveWhole } from "../support/relay.ts";
import { given, use } from "../support/use-relay.ts";
import { Machine } from "./npm.ts";

/** A relay that knows alice and bob and hands out the packages of the present sources, and a machine that has none of them. */
export function useServedConnectors() {
  const stage = sharedByAll(new Stage("alice", "bob"));
  const machine = use(new Machine());
  /** Their folder, and the version of the connector. */
  const made = { folder: "", version: "" };
  beforeAll(async () => {
    made.folder = await madePackages();
    made.version = (await connectorIn(made.folder)).version;
  }, 60_000);
  const pod = given(() => serveWhole(stage.relay, { RELAY_PACKAGES_DIR: made.folder }));

  /** A line of /connectors, as it is printed. */
  async function usageLine(beginning: string): Promise<string> {
    const { packages } = Connectors.parse(await (await fetch(`${pod.url}/connectors`)).json());
    const lines = packages.flatMap(({ usage }) => usage.map(({ line }) => line));
    return lines.find((line) => line.startsWith(beginning)) as string;
  }

  async function keyFileIn(path: string, name: string): Promise<string> {
    const file = join(path, `${name}.json`);
    const { agent, key } = stage.agent(name) as {
      agent: string;
      key: { keyId: string; alg: string; privateKey: string };
    };
    const content = { agent_id: agent, key_id: key.keyId, alg: key.alg, private_key: key.privateKey };
    await writeFile(file, JSON.stringify(content), { mode: 0o600 });
    return file;
  }

  return { stage, machine, made, pod, usageLine, keyFileIn };
}
