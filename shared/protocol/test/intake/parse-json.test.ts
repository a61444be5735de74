import { describeJsonParser } from "../../../../test/support/json-parser.ts";
import { parseJson } from "../../src/intake/parse-json.ts";

describeJsonParser(parseJson);
