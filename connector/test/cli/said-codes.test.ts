import { expect, test } from "@jest/globals";
import { serveRequestLines } from "../../src/cli/control/request-lines.ts";
import { EXIT, exitCodeOf } from "../../src/cli/exit-codes.ts";
import { Failure, hintOf } from "../../src/cli/failure.ts";
import type { Connector } from "../../src/connector.ts";
import { hintOf as hintOfTool } from "../../src/mcp/tool-errors.ts";

async function* lineOf(request: object) {
  yield JSON.stringify(request);
}

test.each(["a_later_code", "constructor", "__proto__", "toString"])(
  "A relay's code %s is a word like any other",
  async (code) => {
    const failure = new Failure(code, "No.", "Ask another time.");
    expect([exitCodeOf(code), hintOf(failure), hintOfTool(failure)]).toEqual([
      EXIT.refused,
      failure.hint,
      failure.hint,
    ]);
    const written: string[] = [];
    const write = async (line: string) => void written.push(line);
    const bounded = () => Promise.reject(failure);
    await serveRequestLines(lineOf({ to: "agent://bob", payload: {} }), write, {} as Connector, { bounded });
    expect(JSON.parse(written.join())).toMatchObject({ event: "refused", code, hint: failure.hint });
  },
);
