import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { Redis } from "ioredis";
import Koa from "koa";
import { koaBody } from "koa-body";
import { ED25519_BYTES, privateKeyOfSeed, signEd25519 } from "relay-protocol/signing/algorithms.ts";
import { listenAndSay, REDIS_CLIENT, setting } from "./peer.ts";

/** An HTTP gateway that checks nothing: it reads the body, signs it, publishes it, and answers. */

const privateKey = privateKeyOfSeed(randomBytes(ED25519_BYTES.seed));
const publisher = new Redis(setting("REDIS_PATH"), REDIS_CLIENT);
const app = new Koa();
app.use(koaBody());
app.use(async (ctx) => {
  const text = JSON.stringify((ctx.request as { body?: unknown }).body);
  const sig = signEd25519(privateKey, Buffer.from(text)).toString("base64url");
  await publisher.publish("pod", `${text.slice(0, -1)},"sig":"${sig}"}`);
  ctx.status = 202;
  ctx.body = { ok: true, accepted: true };
});
listenAndSay(createServer(app.callback()));
