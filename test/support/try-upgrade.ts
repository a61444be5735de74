import { randomBytes } from "node:crypto";
import { type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";

/** Asks for a websocket by hand. Resolves to the answer; a connection that is granted is dropped at once. */
export async function tryUpgrade(at: { readonly url: string }, path: string, headers: Record<string, string> = {}) {
  const { resolve, reject, promise } = Promise.withResolvers<{ answer: IncomingMessage; body: string }>();
  const handshake = {
    Connection: "Upgrade",
    Upgrade: "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": randomBytes(16).toString("base64"),
  };
  const req = request(`${at.url}${path}`, { headers: { ...handshake, ...headers } });
  req.on("upgrade", (answer, socket) => {
    socket.on("error", () => {}).destroy();
    resolve({ answer, body: "" });
  });
  req.on("response", async (answer) => resolve({ answer, body: await text(answer) }));
  req.on("error", reject);
  req.end();
  const { answer, body } = await promise;
  return { status: answer.statusCode, headers: answer.headers, problem: body === "" ? null : JSON.parse(body) };
}
