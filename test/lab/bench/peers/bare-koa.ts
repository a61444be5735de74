import { createServer } from "node:http";
import { Redis } from "ioredis";
import Koa from "koa";
import { koaBody } from "koa-body";
import { listenAndSay, setting } from "./listening.ts";

/** An HTTP gateway that checks nothing: it reads the body, publishes it, and answers. */

const publisher = new Redis(setting("REDIS_PATH"));
const app = new Koa();
app.use(koaBody());
app.use(async (ctx) => {
  await publisher.publish("pod", JSON.stringify((ctx.request as { body?: unknown }).body));
  ctx.status = 202;
  ctx.body = { ok: true, accepted: true };
});
listenAndSay(createServer(app.callback()));
