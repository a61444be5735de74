import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { GenericContainer } from "testcontainers";
import { parse } from "yaml";

interface DeployedEdge {
  readonly image: string;
  readonly command: string[];
  readonly user: string;
  readonly volumes: readonly string[];
}

const ROOT = new URL("../../../", import.meta.url);
const { edge } = parse(await readFile(new URL("docker-compose.yml", ROOT), "utf8"), { merge: true }).services as {
  readonly edge: DeployedEdge;
};
const mounts = edge.volumes.map((volume) => {
  const [source = "", target = ""] = volume.split(":");
  return { source: fileURLToPath(new URL(source, ROOT)), target, mode: "ro" as const };
});

export const EDGE_IMAGE = edge.image;

/** Makes a container the edge of docker-compose.yml. @param more what else is mounted. */
export function asEdge<Container extends GenericContainer>(container: Container, more: typeof mounts = []): Container {
  return container
    .withCommand(edge.command)
    .withUser(edge.user)
    .withTmpFs({ "/tmp": "" })
    .withBindMounts([...mounts, ...more]);
}
