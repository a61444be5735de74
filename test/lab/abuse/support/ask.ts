import { request } from "node:http";
import { text } from "node:stream/consumers";

const TIMEOUT_MS = 3000;

export interface HttpAnswer {
  readonly status: number;
  readonly body: string;
}

/**
 * One request on a connection of its own, as probes come; a body is JSON, and makes it a POST.
 * @throws Error when it is not answered within three seconds.
 */
export async function ask(
  port: number,
  path: string,
  headers: Readonly<Record<string, string>>,
  body?: object,
): Promise<HttpAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<HttpAnswer>();
  const json = body === undefined ? {} : { "content-type": "application/json" };
  const method = body === undefined ? "GET" : "POST";
  const options = { host: "127.0.0.1", port, path, method, headers: { ...headers, ...json }, agent: false };
  const asking = request(options, (answer) => {
    text(answer).then((body) => resolve({ status: answer.statusCode ?? 0, body }), reject);
  });
  const timer = setTimeout(() => asking.destroy(new Error("no answer")), TIMEOUT_MS);
  asking.on("error", reject);
  asking.end(body === undefined ? undefined : JSON.stringify(body));
  return await promise.finally(() => clearTimeout(timer));
}
