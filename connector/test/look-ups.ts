import { jest } from "@jest/globals";
import { type HttpAnswer, HttpClient } from "../src/http-client.ts";

/** What a relay, or something else, answers over HTTP. */
export const said = (body: object | string, status = 200): HttpAnswer => ({
  status,
  headers: {},
  text: typeof body === "string" ? body : JSON.stringify(body),
});

/** Has connectors ask this in place of their relay. @param answer `asked` asks the relay. */
export function answerLookUps(
  answer: (path: string, asked: () => Promise<HttpAnswer>) => HttpAnswer | Promise<HttpAnswer>,
) {
  const { ask } = HttpClient.prototype;
  return jest.spyOn(HttpClient.prototype, "ask").mockImplementation(async function (this: HttpClient, ...given) {
    return await answer(given[0], () => ask.apply(this, given));
  });
}
