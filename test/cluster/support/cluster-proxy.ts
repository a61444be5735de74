import type { ClusterNode } from "../../../deploy/local/cluster-node.ts";
import { RedisProxy } from "../../support/redis-proxy.ts";

/** Ports, as nodes name them: in the slot map, and where they send a call to another node. */
const NAMED_PORT = /:(\d+)(?=\r\n)/g;

/** Stands between one service and all nodes of a Redis Cluster, each of which it is told at the proxy's own port. */
export class ClusterProxy extends RedisProxy {
  readonly #url: string;
  readonly #nodes: readonly ClusterNode[];

  /** @param url of the cluster, with the service's user. */
  constructor(url: string, nodes: readonly ClusterNode[]) {
    super(...nodes.map(({ port }) => `redis://127.0.0.1:${port}`));
    this.#url = url;
    this.#nodes = nodes;
  }

  override get url(): string {
    return this.urlFor(this.#url);
  }

  override urlFor(clusterUrl: string): string {
    return clusterUrl.replace(/:(\d+)(?=,|$)/g, (named, port) => this.#inPlaceOf(named, port));
  }

  protected override retold(chunk: Buffer): Buffer {
    const text = chunk.toString("latin1").replace(NAMED_PORT, (named, port) => this.#inPlaceOf(named, port));
    return Buffer.from(text, "latin1");
  }

  #inPlaceOf(named: string, port: string): string {
    const n = this.#nodes.findIndex((node) => node.port === Number(port));
    return n === -1 ? named : `:${this.ports[n]}`;
  }
}
