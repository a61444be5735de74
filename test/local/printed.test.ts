import { execFileSync, spawnSync } from "node:child_process";
import { describe, expect, test } from "@jest/globals";
import { SimpleSendRequest } from "relay-protocol/contract/requests.ts";
import { banner } from "../../deploy/local/banner.ts";

describe("what npm start prints", () => {
  const started = {
    baseUrl: "http://127.0.0.1:8080",
    websocketUrl: "ws://127.0.0.1:8080/ws",
    apiKey: "rk_example",
    keysFile: undefined,
    shards: undefined,
  };

  test("names both addresses and the API key", () => {
    const text = banner(started);
    for (const part of [started.baseUrl, started.websocketUrl, started.apiKey]) expect(text).toContain(part);
  });

  test("says how to listen and send, and where the relay is when that is not where relay looks first", () => {
    const text = banner(started);
    expect(text).toContain("npx --no relay listen --key .local/bob.json\n");
    expect(text).toContain("npx --no relay send --key .local/alice.json agent://bob '{");
    expect(text).not.toContain("--url");
    const elsewhere = banner({ ...started, baseUrl: "http://127.0.0.1:9000" });
    expect(elsewhere.match(/npx --no relay .* --url http:\/\/127\.0\.0\.1:9000/g)).toHaveLength(2);
  });

  test("holds a line that, pasted into a shell, sends alice's message to bob", () => {
    const line = /^ {2}curl (.*)$/m.exec(banner(started))?.[1];
    const words = execFileSync("/bin/sh", ["-c", `printf '%s\\n' ${line}`], { encoding: "utf8" }).split("\n");
    expect(words).toContain("http://127.0.0.1:8080/v1/messages/send");
    expect(words).toContain("content-type: application/json");
    expect(words).toContain("x-api-key: rk_example");
    const body = JSON.parse(words[words.indexOf("-d") + 1] ?? "");
    expect(SimpleSendRequest.parse(body)).toMatchObject({ from: "agent://alice", to: "agent://bob" });
  });

  test("holds the line that ends a primary when Redis is a cluster of its own, and who is whose replica", () => {
    const text = banner({
      ...started,
      shards: [
        [4711, 4712],
        [4713, 4714],
      ],
    });
    expect(text).toMatch(/^ {2}kill -KILL 4711$/m);
    expect(text).toMatch(/\b4713\b.*\b4714$/m);
    expect(banner(started)).not.toContain("kill");
  });

  test("says how to make a key when it knows none", () => {
    const text = banner({ ...started, apiKey: undefined, keysFile: "/etc/keys.json" });
    const terms = "--agent agent://<name> --file /etc/keys.json --url http://127.0.0.1:8080";
    expect(text).toContain(`npm run keys -- new-api-key ${terms}`);
    expect(text).not.toContain("x-api-key");
  });
});

test.each([
  ["--help", 0, "stdout"],
  ["--clustr", 2, "stderr"],
] as const)("npm start %s says that there are no options, and starts nothing", (option, status, where) => {
  const ended = spawnSync(process.execPath, ["deploy/local/main.ts", option], { encoding: "utf8", timeout: 55_000 });
  expect(ended.status).toBe(status);
  expect(ended[where]).toContain("npm start takes no options");
  expect(ended.stderr).not.toContain("    at ");
});
