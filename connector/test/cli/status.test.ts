import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "@jest/globals";
import { shared } from "../fixture.ts";
import { jsonLines } from "../kit.ts";
import { Shell } from "./shell.ts";

const COUNTS = { ok: true, online_agents: 1, stale_agents: 0, offline_agents: 0, complete: false };
const UNAVAILABLE = {
  ok: false,
  code: "unavailable",
  detail: "Partition 3 is out of reach.",
  hint: "Later.",
  retry: "later",
};

/** A relay of which a part is out of reach: that of these agents. */
class PartialRelay extends Shell {
  readonly #server: Server = createServer(({ url = "" }, response) => {
    const agent_id = new URL(url, this.url).searchParams.get("agent_id");
    const isAway = this.away.includes(agent_id ?? "counts");
    const answer = agent_id === null ? COUNTS : { ok: true, agent_id, status: "online", stale_ms: 1000 };
    response.writeHead(isAway ? 503 : 200).end(JSON.stringify(isAway ? UNAVAILABLE : answer));
  });
  away: string[] = [];

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  override async start(): Promise<void> {
    await super.start();
    await once(this.#server.listen(0, "127.0.0.1"), "listening");
  }

  override async stop(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await super.stop();
  }

  async status(...words: string[]) {
    return await this.run(["status", "--url", this.url, ...words]);
  }
}

const relay = shared(new PartialRelay());

test("relay status tells of the agents that it can, and of the others why not, and ends with that error's code", async () => {
  relay.away = ["agent://bob"];
  const told = await relay.status("alice", "bob", "carol", "--json");
  const { code, hint, retry, detail: message } = UNAVAILABLE;
  expect([told.code, jsonLines(told.stdout)]).toEqual([
    4,
    [
      {
        ok: false,
        relay: COUNTS,
        agents: [
          expect.objectContaining({ agent_id: "agent://alice", status: "online" }),
          { ok: false, agent_id: "agent://bob", code, message, hint, retry },
          expect.objectContaining({ agent_id: "agent://carol", status: "online" }),
        ],
      },
    ],
  ]);
  const text = await relay.status("alice", "bob", "carol");
  const lines = text.stdout.trimEnd().split("\n");
  expect([text.code, lines.length]).toEqual([4, 4]);
  expect(lines[0]).toMatch(/alice.*online/);
  expect(lines[1]).toMatch(/bob.*unavailable/);
});

test("relay status tells of agents where the counts cannot be had", async () => {
  relay.away = ["counts"];
  const told = await relay.status("alice", "--json");
  expect([told.code, jsonLines(told.stdout)]).toMatchObject([
    4,
    [{ ok: false, relay: { ok: false, code: "unavailable" }, agents: [{ status: "online" }] }],
  ]);
});

test("relay status fails as a whole where nothing can be told", async () => {
  relay.away = ["counts", "agent://alice"];
  const failed = await relay.status("alice", "--json");
  expect([failed.code, failed.stdout, jsonLines(failed.stderr)]).toMatchObject([4, "", [{ code: "unavailable" }]]);
});
